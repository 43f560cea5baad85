package shield

import (
	"regexp"
	"slices"
	"strings"
)

// A markerRule finds a pattern of characters that ordinary text does not have. Examples are a tag, a chat token, and a
// link that sends data to another server.
type markerRule struct {
	name, why string
	act       FindingAction
	// requiredByte is a string that each match of the pattern contains. The text is first searched for this string,
	// because most texts do not contain it.
	requiredByte string
	pattern      *regexp.Regexp
	origin       TextOrigin
	// requiredWords are lower-case words. Each match of the pattern contains at least one of them, in any letter case.
	// If requiredWords is nil, there is no such condition.
	requiredWords []string
}

// speakerNames matches the names of tags that claim to come from another speaker or to be important.
const speakerNames = `system|assistant|hidden|secret|instructions?|information|important|system[-_ ](prompt|message|instructions?|reminder|note|override)|critical[-_ a-z]*|admin[-_ a-z]*|developer|override|directive|mandatory|priority|urgent|confidential|crucial|invisible|sys|ai[-_ ]?instructions?|private|internal[-_ ]?note|attention|developer[-_ ](message|prompt|note)|(agent|model|ai|llm|assistant)[-_ ](tasks?|notes?|orders?|rules?|prompt|message|instructions?|directive)|(notes?|message|instructions?|orders?|tasks?|rules?)[-_ ](to|for)[-_ ](the[-_ ])?(model|ai|agent|assistant|llm)s?|rules?|orders?`

// turnSeparator matches a separator line that pretends to begin or end a message of the system or its owner.
const turnSeparator = `(?im)^[-=*_ \[]{2,}(begin |end )?((system|admin|administrator|developer|new instructions?)( (prompt|message|note|override|instructions?))?|(assistant|agent|ai|llm|model) (internal|only|override|directives?|notes?|instructions?|tasks?))[-=*_ \]]{2,}\s*$`

// markerRules returns the rules in the order in which their findings are reported.
func markerRules() []markerRule {
	return slices.Concat(turnMarkerRules(), orderMarkerRules(), commandMarkerRules(), headingMarkerRules())
}

// turnMarkerRules returns the rules against text that pretends to be another turn of the conversation: tokens of chat
// templates, headings and tags.
func turnMarkerRules() []markerRule {
	compile := regexp.MustCompile
	tags, turns := compile(`(?is)<\s*(`+speakerNames+`)(\s[^<>]*)?>.{12,}</\s*(`+speakerNames+`)`),
		compile(turnSeparator)
	turnWords := []string{"system", "admin", "developer", "new instruction", "internal", "only", "override",
		"directive", "note", "instruction", "task"}
	return []markerRule{
		{"chat-token", "contains a token that separates the turns of a conversation", ActionBlank, "<|",
			compile(`<\|\s*(im_start|im_end|im_sep|system|user|assistant|end|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|tool|start|message|channel|fim_\w+)\s*\|>`), FromAnywhere, nil},
		{"chat-token", "contains a token that separates the turns of a conversation", ActionBlank, "[",
			compile(`\[/?INST\]|<</?SYS>>|\[/?(SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]`), FromAnywhere,
			[]string{"inst]", "sys>>", "system_prompt]", "available_tools]", "tool_"}},
		{"chat-token", "contains a token that separates the turns of a conversation", ActionBlank, "<",
			compile(`<(start_of_turn|end_of_turn|bos|eos)>|<｜(User|Assistant|System|begin▁of▁sentence)｜>`),
			FromAnywhere, []string{"_of_turn>", "bos>", "eos>"}},
		{"chat-token", "contains the heading of another turn of the conversation", ActionFlag, ":",
			compile(`(?im)^\s*#{0,4}\s*(\*\*)?(system|assistant|human)(\*\*)?\s*:\s+\S`), FromDefinitions, nil},
		{"chat-token", "contains the heading of another turn of the conversation", ActionFlag, "#",
			compile(`(?im)^\s*#{2,6}\s*(\(\s*_?(system|assistant)[a-z_ ]*\)|(system|assistant)( (message|prompt|instructions?|override))?\s*:\s*\S)`), FromResults, []string{"system", "assistant"}},
		{"chat-token", "contains the heading of another turn of the conversation", ActionBlank, "--", turns,
			FromAnywhere, turnWords},
		{"chat-token", "contains the heading of another turn of the conversation", ActionBlank, "==", turns,
			FromAnywhere, turnWords},
		{"chat-token", "contains the heading of another turn of the conversation", ActionFlag, "[/",
			compile(`(?i)\[/\s*(sys|system|admin|developer|user|assistant)\s*\]`), FromAnywhere, nil},
		{"chat-token", "contains the heading of another turn of the conversation", ActionFlag, "[",
			compile(`(?im)^\s*\[(system|admin|developer)\]:?\s+(you (are (an?|now|the)\b|must|will)|ignore|disregard|forget|from now on|new (task|instruction|role)|your (new )?(task|role|job|goal))`), FromResults, []string{"system]", "admin]", "developer]"}},
		{"tag", "contains a tag that claims another author", ActionBlank, "</", tags, FromDefinitions, nil},
		{"tag", "contains a tag that claims another author", ActionBlank, "<",
			compile(`(?s)<\s*[A-Z]{4,}[A-Z _-]*\s*>(\s*\n|.{20,}</\s*[A-Z]{4,})`), FromDefinitions, nil},
		{"tag", "contains a tag that claims another author", ActionBlank, "<",
			compile(`(?i)</?(tool-output|external-data|tool_result|function_call|function_results)>`),
			FromDefinitions, nil},
		{"tag", "contains a tag that claims another author", ActionFlag, "</", tags, FromResults, nil},
	}
}

// orderMarkerRules returns the rules against instructions that people do not see, and against calls of other tools.
func orderMarkerRules() []markerRule {
	compile := regexp.MustCompile
	return []markerRule{
		{"new-orders", "replaces the user's instructions", ActionBlank, ":",
			compile(`(?i)\bnew\s+(system\s+)?(instruction|directive|task|order)s?\s*:`), FromAnywhere,
			[]string{"instruction", "directive", "task", "order"}},
		{"comment", "contains a comment that people do not see", ActionFlag, "<!--", compile(`(?s)<!--(?:[^-]|-[^-]){14}`),
			FromDefinitions, nil},
		{"comment", "contains a comment that people do not see", ActionFlag, "[",
			compile(`(?m)^\s*\[(//|comment|_)\]:\s*(#|<>)`), FromDefinitions, nil},
		{"hidden-style", "contains text that its style hides", ActionFlag, "style",
			compile(`(?i)style\s*=\s*["'][^"']*(display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0[;"'.\s]|color\s*:\s*(white|transparent|#fff))`), FromDefinitions, nil},
		{"order-tool", "tells the model to call another tool with given arguments", ActionFlag, "_",
			compile("(?i)(\\b(please|also|then|next|immediately|must|by|step \\d+:?)|,) (also )?call(ing)? [`'\"]?\\w+_\\w+[`'\"]?( tool)? (with|on) |[,:] (also |immediately )?(call|invoke) [`'\"]\\w+_\\w+[`'\"]:\\s*\\n\\s*[-*]"), FromResults, []string{"call", "invoke "}},
		{"comment", "contains a comment with instructions", ActionFlag, "<!--",
			compile(`(?is)<!--[^>]{0,400}?\b(call\s+\x60?\w+_\w+|(call|use|invoke)\s+the\s+\w+\s+tool|you\s+must|(forward|send|email)\s[^>]{0,80}\w@\w|ignore\s+(all|any|the)\s+(previous|prior|above|earlier)|do\s+not\s+(tell|mention|inform|reveal|alert))\b`), FromResults, nil},
		{"hidden-style", "contains hidden instructions to a model", ActionFlag, "<",
			compile(`(?is)(style\s*=\s*["'][^"']*(display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](px|pt|em|%|;|["'])|opacity\s*:\s*0[;"'.\s]|left\s*:\s*-\d{3,}|color\s*:\s*(white|transparent|#fff(fff)?)\b)[^"']*["']?|<\w+(\s[^<>]*)?\shidden\b)[^<>]*>[^<>]{0,200}\b(ignore|disregard|assistants?|AIs?|LLMs?|instructions|summari[sz]\w*|you must|forward|reveal|override|system:|critical:|do not (tell|mention|provide|answer))`), FromResults, []string{"hidden", "style"}},
		{"chat-token", "claims to be the system and gives instructions", ActionFlag, ":",
			compile(`\b([A-Z]{3,} ){0,3}SYSTEM( [A-Z]{3,}){0,3}: [^\n]{0,60}?\b(to (fix|resolve|auto-?remediate|continue|proceed)|you must|please|ignore|disregard|reveal|forward|delete|immediately)\b`), FromResults, []string{"system"}},
		{"addressed", "contains a field with instructions to a model", ActionFlag, "_",
			compile(`(?im)^\s*["']?(model|agent|ai|llm|assistant)_(instructions?|directives?|orders?)["']?\s*[:=]\s*\S`), FromResults, []string{"_instruction", "_directive", "_order"}},
		{"order", "contains instructions for a summary or an evaluation of the text", ActionFlag, "s",
			compile(`(?i)\bwhen(ever)? (you )?(are )?(summari[sz]\w*|(analy[sz]|evaluat|scor|rank|rat|assess|grad)\w* this [^.\n]{0,30})[^.\n]{0,40}[,:]? ?\b(also|always|never|you must|do not|be sure|make sure|(please )?(include|append|insert|mention|recommend|call|send|forward|state|say|assign|give|use))\b`), FromResults, []string{"when"}},
	}
}

// commandMarkerRules returns the rules against links that send data to other servers, scripts, shell commands and
// instructions in capitals.
func commandMarkerRules() []markerRule {
	compile := regexp.MustCompile
	return []markerRule{
		{"image", "contains an image that would be fetched", ActionBlank, "](", compile(`!\[[^\]]*\]\(\s*(https?:)?//`),
			FromDefinitions, nil},
		{"image", "contains an image that would be fetched", ActionBlank, "<",
			compile(`(?i)<img\b[^>]*\bsrc\s*=\s*\\?["']?\s*((https?|ftp):|//)`), FromDefinitions, nil},
		{"image", "contains an image whose address sends data elsewhere", ActionFlag, "](",
			compile(`!\[[^\]]*\]\(\s*(https?:)?//[^)\s]*[?&/=][^)\s]*(\[[A-Z_ ]{2,}\]|\{[^}]{2,40}\}|<[A-Z_]{2,}>|%s|\$\{?[A-Z])`), FromResults, nil},
		{"image", "contains a link whose address sends data elsewhere", ActionFlag, "](",
			compile(`\]\(\s*https?://[^)\s]*[?&][^)\s=]+=(\[[A-Z_ ]{2,}\]|\{\{?[a-z_ ]*(data|secret|query|history|conversation|prompt|token|key)[a-z_ ]*\}|<[A-Z_]{2,}>)`), FromAnywhere, nil},
		{"script", "contains a script", ActionFlag, "<",
			compile(`(?is)<script\b[^>]*\bsrc\s*=|<script\b[^>]*>[^<]*[(){};=]`), FromDefinitions, nil},
		{"pipe", "runs a download in a shell", ActionFlag, "|",
			compile(`(?i)\b(curl|wget)\b[^\n|]*\|\s*(sudo\s+)?(ba|z|da)?sh\b`), FromAnywhere, []string{"curl", "wget"}},
		{"pipe", "runs a download in a shell", ActionFlag, "&&",
			compile(`(?i)\b(curl|wget)\b[^\n|]*&&\s*(sudo\s+)?(ba|z|da)?sh\s+\S`), FromAnywhere,
			[]string{"curl", "wget"}},
		{"shell", "contains a command that deletes files", ActionFlag, "rm", compile(`\brm\s+-[a-z]*[rf][a-z]*\s+\S`),
			FromDefinitions, nil},
		{"shell", "contains a command that sends data", ActionFlag, "curl",
			compile(`\bcurl\b[^\n]*\s(-d|--data|-F|-T|-X\s*POST|--upload-file)\b`), FromDefinitions, nil},
		{"shell", "contains a command that reads secrets", ActionFlag, "cat",
			compile(`\bcat\s+["']?(~|/etc|/root|/proc|/home|\$HOME|\.env|\.ssh)`), FromDefinitions, nil},
		{"system-heading", "claims to be the system", ActionFlag, "S",
			compile(`\b(SYSTEM|ADMIN|ADMINISTRATOR|DEVELOPER|OVERRIDE|AI|ASSISTANT|HIDDEN|INTERNAL)(\s+[A-Z]{3,}){0,3}\s*:\s`), FromDefinitions, nil},
		{"system-heading", "claims to be the system", ActionFlag, "[",
			compile(`\[\s*(SYSTEM|ADMIN|ADMINISTRATOR|HIDDEN|DEVELOPER|OVERRIDE)\b[A-Z _-]*\]`), FromDefinitions, nil},
		{"trigger", "changes its behaviour at a secret word", ActionFlag, "(",
			compile(`(?i)\b(special|secret|magic|hidden) (command|keyword|trigger|phrase|word|code)`),
			FromDefinitions, nil},
		{"tool-poison", "asks for data that the tool does not need", ActionFlag, "_",
			compile(`(?i)\b(system_prompt|conversation_(history|context)|chat_history|full_context|user_credentials|llm_context)\b`), FromDefinitions, []string{"system_prompt", "conversation_", "chat_history", "full_context", "user_credentials", "llm_context"}},
		{"banner", "contains an instruction in capitals", ActionFlag, "***", compile(`\*{3} ?\p{Lu}{3,}([ ,]+\p{Lu}{2,}){2,} ?\*{3}`),
			FromAnywhere, nil},
		{"order-tool", "tells the model to call another tool with given arguments", ActionFlag, " with ",
			compile("(?i)\\b(please|must|need to|have to|required to|next,?) (now |first |also |then )?(call|invoke|use|run) (the )?[`'\"]?\\w+[`'\"]? (tool |function )?with (the |an? )?\\w+ [`'\"“:=]"), FromResults, []string{"call ", "invoke ", "use ", "run "}},
		{"order-tool", "tells the model to call another tool first", ActionFlag, "to be ",
			compile("(?i)\\brequires? (the )?[`'\"]?\\w+_\\w+[`'\"]? (tool |function )?to be (called|run|invoked)"),
			FromResults, []string{"require"}},
		{"repeated", "repeats a bracketed word", ActionFlag, "][", compile(`(?i)(\[system\]|\[inst\]|\[admin\]){2,}`),
			FromAnywhere, nil},
	}
}

// headingMarkerRules returns the rules against headings in results that address a model.
func headingMarkerRules() (rules []markerRule) {
	const heading = `(?i)[=*#_-]*\s*(important\s+)?(notes?|messages?|instructions?|memo|attention|directives?|reminder)\s*(for|to)?:?\s+(the\s+|all\s+|any\s+|every\s+)?(ais?|llms?|(ai\s+)?(assistants?|agents?|models?|bots?|chatbots?))\b`
	headingWords := []string{"note", "message", "instruction", "memo", "attention", "directive", "reminder"}
	for _, sign := range [...]string{"==", "--", "**", "##", "__", "[", "<"} {
		rules = append(rules, markerRule{"addressed", "addresses the model that reads it", ActionFlag, sign,
			regexp.MustCompile(regexp.QuoteMeta(sign) + heading), FromResults, headingWords})
	}
	return rules
}

// A markerSet contains the rules for each origin of text. For each rule, first contains the first non-blank byte of
// requiredByte. Most texts lack most of these bytes, so most rules are skipped after one lookup.
type markerSet struct {
	of [FromResults + 1]struct {
		marks []markerRule
		first []byte
	}
}

func newMarkerSet(all []markerRule) *markerSet {
	b := &markerSet{}
	for where := range b.of {
		l := &b.of[where]
		for _, m := range all {
			if m.origin == FromAnywhere || m.origin == TextOrigin(where) {
				l.marks, l.first = append(l.marks, m), append(l.first, strings.TrimSpace(m.requiredByte)[0])
			}
		}
	}
	return b
}

// findMarkers returns the first match of each rule in a text. The set of bytes of the text is passed as has.
func (b *markerSet) findMarkers(text string, has *byteSet, where TextOrigin) (found []TextMatch) {
	l := &b.of[where]
	for i, first := range l.first {
		if !has.Has(first) {
			continue
		}
		m := &l.marks[i]
		if !strings.Contains(text, m.requiredByte) || !has.HasNonASCII() && m.requiredWords != nil &&
			!containsAnyFold(text, m.requiredWords) {
			// The words are checked only in ASCII texts. In other texts, the pattern's case folding also accepts
			// letters such as the long s and the Kelvin sign.
			continue
		}
		if at := m.pattern.FindStringIndex(text); at != nil {
			found = append(found, TextMatch{m.name, m.why, m.act, at[0], at[1]})
		}
	}
	return found
}

func containsAnyFold(text string, words []string) bool {
	for _, w := range words {
		if containsFold(text, w) {
			return true
		}
	}
	return false
}
