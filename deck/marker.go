// Package spotlight marks the texts of a server's result as foreign text, for a model that reads the result. A line
// before each text names the server, and a line after the text ends it. Both lines contain the same unpredictable word.
//
// A server cannot write a text that ends its marker early or begins another marker. This also holds for every prefix of
// a marked text: if the text is cut, its last line is missing but no new marker begins. Texts of prompts are inspected
// for rules but not marked. Structured content, images and pages of MCP Apps are not marked. If rules matched, "_meta"
// of the result names them.
package deck

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ShouldMark reports whether a caller gets the marked results of a server. row is the mark setting in the server's
// configuration; nil means that the server has no such setting. Without a setting, results are marked if always is true
// or the caller is one of Drawbridge's own models.
func ShouldMark(caller drawbridge.Caller, row *bool, always bool) bool {
	if row != nil {
		return *row
	}
	return always || caller.Kind == drawbridge.Agent
}

// An Inspector examines a text of a result. It returns the text that a model may read, and the names of the rules that
// the text matched.
type Inspector func(text string) (shown string, rules []string)

// A marker marks the texts of one result. It is not safe for concurrent use.
type marker struct {
	// word is the unpredictable word of both marker lines. server and tool are the names in the first line, as returned
	// by safeName.
	word, server, tool string
	// isAppPage reports whether the result is a page of MCP Apps.
	isAppPage bool
	inspector Inspector
	// met contains the name of each rule that a text of the result matched, without duplicates.
	met []string
	// texts are the marked texts of the result, in order. room is their storage as long as there are at most four.
	texts []string
	room  [4]string
}

// newMarker returns a marker for one result, with its own word. tool is the name of the called tool, or the URI of the
// resource that was read. look inspects each text, and the line before the text names the matched rules. If look is
// nil, texts are not inspected.
func newMarker(word string, server drawbridge.ServerID, tool string, look Inspector) *marker {
	return &marker{word: word, server: safeName(string(server)), tool: safeName(tool),
		isAppPage: strings.HasPrefix(tool, "ui://"), inspector: look}
}

// markerPrefix begins the lines before and after a text. In the text itself it is replaced by defusedPrefix, which
// looks similar but is not a marker.
const (
	markerPrefix  = "[TOOL_OUTPUT::"
	defusedPrefix = `[TOOL_OUTPUT\u003a\u003a`
)

// maxSafeName is the maximum length of a name in a marker line, in bytes.
const maxSafeName = 128

// safeName returns the name with each character that could end the marker line, or imitate the end of the line,
// replaced by "_".
func safeName(name string) string {
	inLine := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' ||
			r == '.' || r == '/'
	}
	for i := range len(name) {
		if !inLine(rune(name[i])) {
			name = strings.Map(func(r rune) rune {
				if inLine(r) {
					return r
				}
				return '_'
			}, name)
			break
		}
	}
	return name[:min(len(name), maxSafeName)]
}

// appendMarked appends a marked text as a JSON string. The lines of the marker contain no characters that need escapes.
func (f *marker) appendMarked(dst []byte, text string) []byte {
	if f.texts == nil {
		f.texts = f.room[:0]
	}
	f.texts = append(f.texts, text)
	text, rules := f.inspect(text)
	dst = append(append(append(dst, '"'), markerPrefix...), f.word...)
	dst = append(append(dst, "::BEGIN server="...), f.server...)
	dst = append(append(dst, " tool="...), f.tool...)
	for i, rule := range rules {
		if i == 0 {
			dst = append(dst, " flagged="...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, safeName(rule)...)
	}
	dst = appendDefused(append(dst, `]\n`...), text)
	dst = append(append(append(dst, `\n`...), markerPrefix...), f.word...)
	return append(dst, `::END]"`...)
}

// inspect returns a text in the form that a model may read, and the rules that the text matched. It also adds these
// rules to f.met.
func (f *marker) inspect(text string) (shown string, rules []string) {
	if f.inspector == nil {
		return text, nil
	}
	shown, rules = f.inspector(text)
	for _, rule := range rules {
		if !slices.Contains(f.met, rule) {
			f.met = append(f.met, rule)
		}
	}
	return shown, rules
}

// appendDefused appends a text as part of a JSON string. It replaces each markerPrefix in the text, and each imitation
// of it: in lower-case or full-width letters, or with invisible characters in between.
func appendDefused(dst []byte, text string) []byte {
	const wide = "［" // the only other character that foldWidthAndCase maps to a bracket
	from := 0
	if strings.IndexByte(text, '[') < 0 && strings.IndexByte(text, wide[0]) < 0 {
		return rawjson.AppendEscaped(dst, text)
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '[' && (text[i] != wide[0] || !strings.HasPrefix(text[i:], wide)) {
			continue
		}
		if n := markerPrefixLen(text[i:]); n > 0 {
			dst = rawjson.AppendEscaped(rawjson.AppendEscaped(dst, text[from:i]), defusedPrefix)
			from = i + n
			i = from - 1
		}
	}
	return rawjson.AppendEscaped(dst, text[from:])
}

// markerPrefixLen returns the length in bytes of a markerPrefix, or an imitation of it, at the start of the text; 0 if
// there is none.
func markerPrefixLen(text string) int {
	want := markerPrefix
	for i, r := range text {
		if want == "" {
			return i
		}
		switch foldWidthAndCase(r) {
		case rune(want[0]):
			want = want[1:]
		default:
			if !isInvisible(r) {
				return 0
			}
		}
	}
	if want != "" {
		return 0
	}
	return len(text)
}

// foldWidthAndCase returns the upper-case ASCII form of a letter of any case or width.
func foldWidthAndCase(r rune) rune {
	if '！' <= r && r <= '～' {
		r -= '！' - '!'
	}
	return unicode.ToUpper(r)
}

// isInvisible reports whether a character is invisible or white space.
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me, unicode.Z) || r == utf8.RuneError ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// markerLinesSize is the usual size of both lines of a marker together, in bytes.
const markerLinesSize = 144

// markResult returns the result of a method with its texts marked. It marks the content of a tool's result, also inside
// a task, and the contents of a resource that is not a page of MCP Apps. Texts of prompts are inspected but not marked,
// since a person chose the prompt. If rules matched, the result names them in its "_meta".
func (f *marker) markResult(method string, result json.RawMessage) json.RawMessage {
	result = f.appendResult(make([]byte, 0, len(result)+markerLinesSize), method, result)
	f.inspectJoined()
	if len(f.met) == 0 {
		return result
	}
	return rawjson.Apply(result, rawjson.Put(rawjson.AppendStrings(nil, f.met...), "_meta", mcp.MetaFlagged))
}

// inspectJoined inspects all marked texts of the result joined to one text. A model reads them together, so an injected
// instruction may begin in one text and end in the next. Of each long text it inspects only the beginning and the end.
func (f *marker) inspectJoined() {
	const edge = 512
	if len(f.texts) < 2 {
		return
	}
	var all strings.Builder
	for _, text := range f.texts {
		if len(text) > 2*edge {
			text = strings.ToValidUTF8(text[:edge], "") + "\n\n" + strings.ToValidUTF8(text[len(text)-edge:], "")
		}
		all.WriteString(text)
		all.WriteByte(' ')
	}
	f.inspect(all.String())
}

// appendResult appends the result with its texts marked. For a prompt, the texts are inspected but not marked.
func (f *marker) appendResult(dst []byte, method string, result json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, result, func(dst []byte, m rawjson.Member) []byte {
		switch {
		case isNamed(m, "content") && (method == mcp.MethodToolsCall || method == mcp.MethodTasksResult):
			return appendEach(dst, m.Value, f.appendBlock)
		case isNamed(m, "result") && method == mcp.MethodTasksGet:
			return f.appendResult(dst, mcp.MethodToolsCall, m.Value)
		case isNamed(m, "contents") && method == mcp.MethodResourcesRead && !f.isAppPage:
			return appendEach(dst, m.Value, f.appendObject)
		case isNamed(m, "messages") && method == mcp.MethodPromptsGet:
			return appendEach(dst, m.Value, f.appendMessage)
		}
		return append(dst, m.Value...)
	})
}

// appendEach appends a list in which each element is replaced by the output of the function one. If list is a single
// object instead, appendEach treats the object as the only element, because some parsers accept it.
func appendEach(dst []byte, list json.RawMessage, one func([]byte, json.RawMessage) []byte) []byte {
	if isObject(list) {
		return one(dst, list)
	}
	return rawjson.AppendArrayFunc(dst, list, one)
}

// markError returns an error object with its message marked. It inspects only the message; the caller must inspect the
// other texts.
func (f *marker) markError(raw json.RawMessage) json.RawMessage {
	return rawjson.AppendObjectFunc(make([]byte, 0, len(raw)+markerLinesSize), raw,
		func(dst []byte, m rawjson.Member) []byte {
			if isNamed(m, "message") {
				if text, ok := rawjson.DecodeString(m.Value); ok {
					return f.appendMarked(dst, text)
				}
			}
			return append(dst, m.Value...)
		})
}

// appendMessage appends a message of a prompt after inspecting its texts. The message has one or several content
// blocks. A text is replaced by the form that a model may read.
func (f *marker) appendMessage(dst []byte, message json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, message, func(dst []byte, m rawjson.Member) []byte {
		switch {
		case !isNamed(m, "content"):
			return append(dst, m.Value...)
		case len(m.Value) > 0 && m.Value[0] == '[':
			return rawjson.AppendArrayFunc(dst, m.Value, f.appendInspected)
		}
		return f.appendInspected(dst, m.Value)
	})
}

// appendInspected appends a content block after inspecting its texts, and the texts of a resource in the block.
func (f *marker) appendInspected(dst []byte, block json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, block, func(dst []byte, m rawjson.Member) []byte {
		if isNamed(m, "resource") {
			return f.appendInspected(dst, m.Value)
		}
		if isNamed(m, "text") {
			if text, ok := rawjson.DecodeString(m.Value); ok {
				if shown, _ := f.inspect(text); shown != text {
					return rawjson.AppendQuoted(dst, shown)
				}
			}
		}
		return append(dst, m.Value...)
	})
}

// appendBlock appends a content block with its texts marked, and the texts of a resource in the block.
func (f *marker) appendBlock(dst []byte, block json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, block, func(dst []byte, m rawjson.Member) []byte {
		if isNamed(m, "resource") {
			return appendEach(dst, m.Value, f.appendObject)
		}
		return f.appendMember(dst, m)
	})
}

// appendObject appends an object with each member "text" marked.
func (f *marker) appendObject(dst []byte, object json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, object, f.appendMember)
}

// appendMember appends a member of an object. A member "text" is marked. If the name is repeated, each such member is
// marked, since parsers disagree about which member counts. Other members are not changed.
func (f *marker) appendMember(dst []byte, m rawjson.Member) []byte {
	if isNamed(m, "text") {
		if text, ok := rawjson.DecodeString(m.Value); ok {
			return f.appendMarked(dst, text)
		}
	}
	return append(dst, m.Value...)
}
