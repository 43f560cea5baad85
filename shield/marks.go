package shield

import (
	"regexp"
	"strings"
)

// A mark is a sign in a text that no prose has: a tag, a token, a link that carries data.
type mark struct {
	name, why string
	act       action
	// sign is a byte that stands in each such text: looked for first, since most have none.
	sign    string
	pattern *regexp.Regexp
	in      whence
}

// speakers are names of tags that stand for who speaks, or for how much it matters.
const speakers = `system|assistant|hidden|secret|instructions?|information|important|system[-_ ](prompt|message|instructions?|reminder|note|override)|critical[-_ a-z]*|admin[-_ a-z]*|developer|override|directive|mandatory|priority|urgent|confidential|crucial|invisible|sys|ai[-_ ]?instructions?|private|internal[-_ ]?note|attention`

func marks() []mark {
	compile := regexp.MustCompile
	return []mark{
		{"chat-token", "has a token that parts the turns of a conversation", blank, "<|", compile(`<\|\s*(im_start|im_end|im_sep|system|user|assistant|end|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|tool|fim_\w+)\s*\|>`), anywhere},
		{"chat-token", "has a token that parts the turns of a conversation", blank, "[", compile(`\[/?INST\]|<</?SYS>>|\[/?(SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]`), anywhere},
		{"chat-token", "has a token that parts the turns of a conversation", blank, "<", compile(`<(start_of_turn|end_of_turn|bos|eos)>|<｜(User|Assistant|System|begin▁of▁sentence)｜>`), anywhere},
		{"chat-token", "has the heading of a turn of a conversation", flag, ":", compile(`(?im)^\s*#{0,4}\s*(\*\*)?(system|assistant|human)(\*\*)?\s*:\s+\S`), definitions},
		{"chat-token", "has the heading of a turn of a conversation", flag, "#", compile(`(?im)^\s*#{2,6}\s*(\(\s*_?(system|assistant)[a-z_ ]*\)|(system|assistant)( (message|prompt|instructions?|override))?\s*:\s*\S)`), results},
		{"chat-token", "has the heading of a turn of a conversation", blank, "-", compile(`(?im)^[-=*_ \[]{2,}(begin |end )?(system|admin|administrator|developer|new instructions?)( (prompt|message|note|override|instructions?))?[-=*_ \]]{2,}\s*$`), anywhere},
		{"tag", "has a tag that speaks for somebody else", blank, "</", compile(`(?is)<\s*(` + speakers + `)\s*>.{12,}</\s*(` + speakers + `)`), definitions},
		{"tag", "has a tag that speaks for somebody else", blank, "<", compile(`(?s)<\s*[A-Z]{4,}[A-Z _-]*\s*>(\s*\n|.{20,}</\s*[A-Z]{4,})`), definitions},
		{"tag", "has a tag that speaks for somebody else", blank, "<", compile(`(?i)</?(tool-output|external-data|tool_result|function_call|function_results)>`), definitions},
		{"tag", "has a tag that speaks for somebody else", flag, "</", compile(`(?is)<\s*(` + speakers + `)\s*>.{12,}</\s*(` + speakers + `)`), results},
		{"new-orders", "gives orders in the place of the user's", blank, ":", compile(`(?i)\bnew\s+(system\s+)?(instruction|directive|task|order)s?\s*:`), anywhere},
		{"comment", "has a comment that people are not shown", flag, "<!--", compile(`(?s)<!--.{12,}`), definitions},
		{"comment", "has a comment that people are not shown", flag, "[", compile(`(?m)^\s*\[(//|comment|_)\]:\s*(#|<>)`), definitions},
		{"hidden-style", "has a text that is styled not to be seen", flag, "style", compile(`(?i)style\s*=\s*["'][^"']*(display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0[;"'.\s]|color\s*:\s*(white|transparent|#fff))`), definitions},
		{"image", "has an image that would be fetched", blank, "](", compile(`!\[[^\]]{0,200}\]\(\s*(https?:)?//`), definitions},
		{"image", "has an image that would be fetched", blank, "<", compile(`(?i)<img\b[^>]{0,200}\bsrc\s*=`), definitions},
		{"image", "has an image whose address carries data away", flag, "](", compile(`!\[[^\]]{0,200}\]\(\s*(https?:)?//[^)\s]*[?&/=][^)\s]{0,80}(\[[A-Z_ ]{2,}\]|\{[^}]{2,40}\}|<[A-Z_]{2,}>|%s|\$\{?[A-Z])`), results},
		{"image", "has a link whose address carries data away", flag, "](", compile(`\]\(\s*https?://[^)\s]*[?&][^)\s=]{1,40}=(\[[A-Z_ ]{2,}\]|\{\{?[a-z_ ]*(data|secret|query|history|conversation|prompt|token|key)[a-z_ ]*\}|<[A-Z_]{2,}>)`), anywhere},
		{"script", "has a script", flag, "<", compile(`(?i)<script\b`), definitions},
		{"pipe", "pipes what it fetches into a shell", flag, "|", compile(`(?i)\b(curl|wget)\b[^\n|]*\|\s*(sudo\s+)?(ba|z|da)?sh\b`), anywhere},
		{"shell", "has a command that takes files away", flag, "rm", compile(`\brm\s+-[a-z]*[rf][a-z]*\s+\S`), definitions},
		{"shell", "has data put to a command that sends it", flag, "curl", compile(`\bcurl\b[^\n]{0,120}\s(-d|--data|-F|-T|-X\s*POST|--upload-file)\b`), definitions},
		{"shell", "has a command that reads what is secret", flag, "cat", compile(`\bcat\s+["']?(~|/etc|/root|/proc|/home|\$HOME|\.env|\.ssh)`), definitions},
		{"system-heading", "speaks as the system", flag, "S", compile(`\b(SYSTEM|ADMIN|ADMINISTRATOR|DEVELOPER|OVERRIDE|AI|ASSISTANT|HIDDEN|INTERNAL)(\s+[A-Z]{3,}){0,3}\s*:\s`), definitions},
		{"system-heading", "speaks as the system", flag, "[", compile(`\[\s*(SYSTEM|ADMIN|ADMINISTRATOR|HIDDEN|DEVELOPER|OVERRIDE)\b[A-Z _-]*\]`), definitions},
		{"trigger", "waits for a sign to change its ways", flag, "(", compile(`(?i)\b(special|secret|magic|hidden) (command|keyword|trigger|phrase|word|code)`), definitions},
		{"tool-poison", "asks for what it has no need of", flag, "_", compile(`(?i)\b(system_prompt|conversation_(history|context)|chat_history|full_context|user_credentials|llm_context)\b`), definitions},
		{"banner", "shouts an order", flag, "***", compile(`\*{3} ?\p{Lu}{3,}([ ,]+\p{Lu}{2,}){2,} ?\*{3}`), anywhere},
		{"repeated", "repeats a bracketed word", flag, "][", compile(`(?i)(\[system\]|\[inst\]|\[admin\]){2,}`), anywhere},
	}
}

// marked gives the marks that a text has.
func marked(all []mark, text string, where whence) (found []finding) {
	for i := range all {
		m := &all[i]
		if m.in != anywhere && m.in != where || !strings.Contains(text, m.sign) {
			continue
		}
		if at := m.pattern.FindStringIndex(text); at != nil {
			found = append(found, finding{m.name, m.why, m.act, at[0], at[1]})
		}
	}
	return found
}
