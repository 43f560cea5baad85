package shield

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Report is the result of checking JSON from a server, such as a definition or the result of a call.
type Report struct {
	Verdict CheckVerdict
	Reasons []Finding
	// Canonical is the form that may be shown to a model. It equals the input bytes, except for the changed texts.
	Canonical json.RawMessage
	// Renamed maps the new names of properties and arguments in Canonical to the original names. It does not contain a
	// new name that replaces two different original names. It may be nil.
	Renamed map[string]string
}

// errNotJSON is returned for invalid JSON.
var errNotJSON = errors.New("not JSON")

// CheckDefinition checks a definition that a server declares: a tool, a prompt, a resource or a resource template. It
// checks every text at every depth, including names and schemas. It returns an error if the input is not JSON; such a
// definition must not be shown.
func (s *Shield) CheckDefinition(raw json.RawMessage) (Report, error) {
	var whole splitText
	rep, err := s.walkTexts(raw, func(w *jsonWalker, text string, key bool) string {
		w.whole = &whole
		return w.checkDefinitionText(text, key)
	})
	if err != nil || rep.Verdict != VerdictClean {
		return rep, err
	}
	if split := s.splitFindings(&whole); len(split) > 0 {
		rep.Reasons, rep.Verdict = append(rep.Reasons, split...), VerdictFlagged
	}
	return rep, nil
}

// splitFindings returns findings about injected instructions that begin in one text of a definition and end in another.
// For this, the texts in whole are checked together. Such texts are flagged and not blanked, since each text alone is
// harmless.
func (s *Shield) splitFindings(whole *splitText) (reasons []Finding) {
	text, found := s.inspector.inspectJoined(whole)
	for _, f := range found {
		r := newFinding(f, text, "", ActionFlag)
		r.Rule, r.Why, r.Offset = "split", "over several members: "+f.Why, 0
		reasons = append(reasons, r)
	}
	return reasons
}

// CheckResult checks each text in the result of a call like CheckResultText. It skips the data of images, audio and
// binary resources.
func (s *Shield) CheckResult(raw json.RawMessage) (Report, error) {
	return s.walkTexts(raw, func(w *jsonWalker, text string, key bool) string {
		if key || w.currentMember() == "data" || w.currentMember() == "blob" {
			return text
		}
		out, reasons := w.shield.checkResultText(text, "", PlaceAnswer)
		w.addFindings(reasons)
		return out
	})
}

func (s *Shield) walkTexts(raw json.RawMessage, look func(*jsonWalker, string, bool) string) (Report, error) {
	if !json.Valid(raw) {
		return Report{}, errNotJSON
	}
	w := &jsonWalker{shield: s, in: raw, checkText: look, worst: VerdictClean}
	w.walk()
	out := raw
	if w.out != nil {
		out = append(w.out, raw[w.copied:]...)
	}
	return Report{verdictOf(w.reasons), w.reasons, out, w.uniqueRenames()}, nil
}

// A jsonWalker walks through JSON, passes each text to checkText, and replaces the text by the return value.
type jsonWalker struct {
	shield    *Shield
	in        []byte
	out       []byte // nil before the first change
	copied    int    // number of bytes of in that are in out
	checkText func(w *jsonWalker, text string, key bool) string
	stack     []walkerFrame
	reasons   []Finding
	worst     CheckVerdict // the verdict of reasons
	renamed   map[string]string
	about     WordTopic  // the topic of the definition, computed on first use
	whole     *splitText // the texts of the definition, to be checked together
}

// A walkerFrame is an object or array that contains the current position.
type walkerFrame struct {
	array bool
	key   string // the member's name in an object; for an array, the name of the member that contains the array
	index int
	value bool // the next string is a value, not a name
}

func (w *jsonWalker) walk() {
	for i := 0; i < len(w.in); {
		switch c := w.in[i]; c {
		case '{', '[':
			f := walkerFrame{array: c == '[', value: c == '['}
			if f.array {
				f.key = w.currentMember()
			}
			w.stack = append(w.stack, f)
			i++
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			i++
		case ',':
			if top := &w.stack[len(w.stack)-1]; top.array {
				top.index++
			} else {
				top.value = false
			}
			i++
		case ':':
			w.stack[len(w.stack)-1].value = true
			i++
		case '"':
			i = w.checkString(i)
		default:
			i++
		}
	}
}

// checkString checks the string that begins at i, and returns the index after it.
func (w *jsonWalker) checkString(i int) int {
	end := i + 1
	for w.in[end] != '"' {
		if w.in[end] == '\\' {
			end++
		}
		end++
	}
	end++
	text := ""
	if body := w.in[i+1 : end-1]; !slices.Contains(body, '\\') && utf8.Valid(body) {
		text = string(body)
	} else if json.Unmarshal(w.in[i:end], &text) != nil {
		text = SanitizedText
	}
	key := len(w.stack) > 0 && !w.stack[len(w.stack)-1].value
	if key {
		w.stack[len(w.stack)-1].key = text
	}
	if text == "" {
		return end
	}
	if now := w.checkText(w, text, key); now != text {
		w.out = append(append(w.out, w.in[w.copied:i]...), quoteJSON(now)...)
		w.copied = end
	}
	return end
}

// quoteJSON returns a text as a JSON string with as few escapes as possible.
func quoteJSON(text string) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return []byte(strconv.Quote(SanitizedText))
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// Limits of a report. After maxFindings findings, a finding is added only if its verdict is worse than that of all
// earlier findings. maxPathBytes is the maximum size of a JSON pointer in a finding.
const (
	maxFindings  = 4096
	maxPathBytes = 512
)

// pointer returns the JSON pointer to the current position. A long pointer is cut.
func (w *jsonWalker) pointer() string {
	var b strings.Builder
	for _, f := range w.stack {
		if size := b.Len(); size+len(f.key) > maxPathBytes {
			return b.String() + "/" + pointerSegment(safetext.Truncate(f.key, maxPathBytes-min(size, maxPathBytes),
				safetext.Bytes, ""))
		}
		b.WriteByte('/')
		if f.array {
			b.WriteString(strconv.Itoa(f.index))
		} else {
			b.WriteString(pointerSegment(f.key))
		}
	}
	return b.String()
}

// pointerSegment escapes a name for a JSON pointer.
func pointerSegment(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// currentMember returns the name of the member whose value contains the current position. In an array, it is the member
// that contains the array.
func (w *jsonWalker) currentMember() string {
	if n := len(w.stack); n > 0 {
		return w.stack[n-1].key
	}
	return ""
}

// checkDefinitionText checks a text of a definition. If a name would be blanked, it is replaced by a neutral name
// instead.
func (w *jsonWalker) checkDefinitionText(text string, key bool) string {
	name := key || len(w.stack) == 1 && w.currentMember() == "name" || w.isPropertyReference()
	most := w.shield.caps.Schema
	if len(w.stack) == 1 {
		switch w.currentMember() {
		case "instructions":
			most = w.shield.caps.Instructions
		default:
			most = w.shield.caps.Description
		}
	}
	if key && len(text) < 12 && isPlainKey(text) || !key && w.currentMember() == "type" && isSchemaType(text) {
		return text
	}
	if name {
		most = maxDefinitionText
	}
	at := w.textPlace(key)
	if name && !isSentenceLong(text) {
		at = PlaceNone // a name is not an instruction
	}
	whole := w.whole
	if name || !strings.Contains(text, " ") && w.isInList() {
		whole = nil // a name, or one of the values that a property may have
	}
	out, reasons := w.shield.checkText(text, "", most, at, w.definitionTopic, whole)
	if name && (out == SanitizedText && text != SanitizedText || out == "") {
		out = "sanitized_" + shortHash(text)
		for i := range reasons {
			if reasons[i].Action == "blanked" {
				reasons[i].Action = "renamed"
			}
		}
	}
	if name && out == text && !isSentenceLong(text) {
		// a name is not an instruction
		reasons = slices.DeleteFunc(reasons, func(r Finding) bool {
			return r.Action == "flagged" &&
				r.Rule != lookalikeRule
		})
	}
	if !name && verdictOf(reasons) == VerdictClean && at == PlaceMember &&
		w.shield.isMisplacedOrder(w.currentMember(), text) {
		reasons = append(reasons, Finding{Rule: "misplaced", Action: "flagged",
			Why: "has an order where a value or a title belongs", Excerpt: safeExcerpt(text)})
	}
	if !name && len(reasons) > 0 && w.currentMember() == "title" && len(w.stack) <= 2 &&
		w.shield.inspector.IsOnTopic(text, w.definitionTopic()) {
		// a title that only repeats the name in other words is not an instruction to a model
		reasons = slices.DeleteFunc(reasons, func(r Finding) bool {
			return r.Action == "flagged" && (r.Rule == WeighedRule || r.Rule == "misplaced")
		})
	}
	if name && verdictOf(reasons) == VerdictClean && isSentenceLong(text) {
		reasons = append(reasons, Finding{Rule: "name", Action: "flagged", Why: "reads as a sentence, and is a name",
			Excerpt: safeExcerpt(text)})
	}
	w.addFindings(reasons)
	if name && out != text && (key || len(w.stack) > 1) {
		w.noteRenamed(out, text)
	}
	return out
}

// definitionTopic returns the topic of a definition: the words of its name, its description and the names of its
// properties.
func (w *jsonWalker) definitionTopic() WordTopic {
	if w.about != nil {
		return w.about
	}
	var whole struct{ Name, Description string }
	texts := []string{}
	if json.Unmarshal(w.in, &whole) == nil {
		texts = append(texts, whole.Name, whole.Description)
	}
	names := &jsonWalker{in: w.in, checkText: func(w *jsonWalker, text string, key bool) string {
		if n := len(w.stack); key && n > 1 && w.stack[n-2].key == "properties" && !isSentenceLong(text) {
			texts = append(texts, text)
		}
		return text
	}}
	names.walk()
	w.about = w.shield.inspector.TopicOf(texts...)
	return w.about
}

// textPlace returns the place of the current text in the definition. It determines how much prose is normal for the
// text.
func (w *jsonWalker) textPlace(key bool) TextPlace {
	top := len(w.stack) == 1
	switch m := w.currentMember(); {
	case key:
		return PlaceMember
	case m == "description" && !top:
		return PlaceSchema
	case m == "description":
		return PlaceDescription
	case top && m == "message":
		return PlaceNone
	case top && m == "instructions":
		return PlaceInstructions
	case (m == "default" || m == "examples" || m == "example") && isSpokenProperty(w.currentProperty()):
		return PlaceInstructions
	}
	return PlaceMember
}

// isInList reports whether the current text is an element of a list.
func (w *jsonWalker) isInList() bool { return len(w.stack) > 0 && w.stack[len(w.stack)-1].array }

// currentProperty returns the name of the property whose schema contains the current position, or "".
func (w *jsonWalker) currentProperty() string {
	for n := len(w.stack) - 1; n > 1; n-- {
		if w.stack[n-2].key == "properties" {
			return w.stack[n-1].key
		}
	}
	return ""
}

// isSchemaType reports whether a text is a type of JSON Schema.
func isSchemaType(text string) bool {
	switch text {
	case "string", "object", "number", "integer", "boolean", "array", "null":
		return true
	}
	return false
}

// isSpokenProperty reports whether a property contains a message to people, so that its default value may be a
// sentence.
func isSpokenProperty(property string) bool {
	switch strings.ToLower(property) {
	case "message", "text", "body", "content", "prompt", "question", "comment", "reason", "subject", "greeting",
		"instructions", "query":
		return true
	}
	return false
}

// noteRenamed stores that own was replaced by the new name now. If now replaces two different names, noteRenamed stores
// "" as the original name.
func (w *jsonWalker) noteRenamed(now, own string) {
	if w.renamed == nil {
		w.renamed = map[string]string{}
	}
	if before, ok := w.renamed[now]; ok && before != own {
		own = ""
	}
	w.renamed[now] = own
}

// uniqueRenames returns the new names with their original names. It omits a new name that replaces two names or is also
// used elsewhere in the definition.
func (w *jsonWalker) uniqueRenames() map[string]string {
	if w.renamed == nil {
		return nil
	}
	again := &jsonWalker{in: w.in, checkText: func(_ *jsonWalker, text string, key bool) string {
		if _, ok := w.renamed[text]; ok && key {
			w.renamed[text] = ""
		}
		return text
	}}
	again.walk()
	maps.DeleteFunc(w.renamed, func(_, own string) bool { return own == "" })
	return w.renamed
}

// addFindings adds findings about the text at the current position.
func (w *jsonWalker) addFindings(reasons []Finding) {
	if len(reasons) == 0 {
		return
	}
	worst := verdictOf(reasons)
	if len(w.reasons) >= maxFindings && worst >= w.worst {
		return
	}
	w.worst = min(w.worst, worst)
	path := w.pointer()
	for i := range reasons {
		reasons[i].Path = path
	}
	w.reasons = append(w.reasons, reasons...)
}

// isMisplacedOrder reports whether a text is a sentence with an instruction, but its member is meant for a value or a
// short title.
func (s *Shield) isMisplacedOrder(member, text string) bool {
	const fewest = 7
	switch member {
	case "title", "default", "const", "enum", "examples", "example", "$comment", "format", "pattern":
	default:
		return false
	}
	if strings.Count(text, " ") < fewest {
		return false
	}
	return s.inspector.HasOrder(text)
}

// isPropertyReference reports whether the current value is the name of a property, as in "required", or of a prompt's
// argument. If the property is renamed, such a name must be renamed too.
func (w *jsonWalker) isPropertyReference() bool {
	n := len(w.stack)
	if n == 3 && w.stack[1].array && w.stack[0].key == "arguments" && w.stack[2].key == "name" {
		return true
	}
	return n > 1 && w.stack[n-1].array && !w.stack[n-2].array && w.stack[n-2].key == "required"
}

// isPlainKey reports whether a key has only ordinary ASCII characters, as nearly all keys do.
func isPlainKey(key string) bool {
	for i := range len(key) {
		if b := key[i]; b >= utf8.RuneSelf || b < '$' {
			return false
		}
	}
	return true
}

// isSentenceLong reports whether a name has so many words that it may be a sentence.
func isSentenceLong(name string) bool {
	const most = 8
	return strings.Count(name, "_")+strings.Count(name, "-") >= most || strings.Count(name, " ") > 2*most
}

func shortHash(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:3])
}
