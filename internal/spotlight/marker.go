// Package spotlight marks the texts of a server's result as foreign, for a model that reads it. Two lines around each
// text name the server and carry an unpredictable word.
//
// No result, whatever it contains, can close its marker early or open another one. This also holds for every prefix of
// a marked text: truncation removes the end and opens nothing. Nothing but the marked texts changes in a result.
// Structured content, images and pages of MCP Apps are not marked.
package spotlight

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

// ShouldMark reports whether a caller gets marked results of a server. Row is the server's setting, nil if it has none;
// then always decides. Our own models always get marked results.
func ShouldMark(caller drawbridge.Caller, row *bool, always bool) bool {
	if row != nil {
		return *row
	}
	return always || caller.Kind == drawbridge.Agent
}

// An Inspector returns the text as a model may read it and the rules that it met.
type Inspector func(text string) (shown string, rules []string)

// A marker marks the texts of one result. It belongs to one goroutine.
type marker struct {
	// word is unpredictable. server and tool stand in the first line, as safeName returns them.
	word, server, tool string
	// isAppPage reports that the result is a page of MCP Apps.
	isAppPage bool
	inspector Inspector
	// met has each rule that the texts of the result met, once.
	met []string
	// texts are consecutive texts, in room as long as they are few.
	texts []string
	room  [4]string
}

// newMarker returns a marker for one result, with its own word: of that tool, or of the resource with that URI. Each
// text passes through look, and its line names the rules that it met; a nil look leaves texts unchanged.
func newMarker(word string, server drawbridge.ServerID, tool string, look Inspector) *marker {
	return &marker{word: word, server: safeName(string(server)), tool: safeName(tool),
		isAppPage: strings.HasPrefix(tool, "ui://"), inspector: look}
}

// markerPrefix begins the lines before and after a text. In the text itself it is replaced by defusedPrefix, which
// looks alike but is not a marker.
const (
	markerPrefix  = "[TOOL_OUTPUT::"
	defusedPrefix = `[TOOL_OUTPUT\u003a\u003a`
)

// maxSafeName bounds a name in a line, in bytes.
const maxSafeName = 128

// safeName returns a name without characters that could end its line or look like an end.
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

// appendMarked appends a marked text as a JSON string. The lines of the marker need no escapes.
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

// inspect returns the readable form of a text and keeps the rules that it met.
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

// appendDefused appends a text, as part of a JSON string, with everything defused that begins a marker line or looks
// like one: in small or wide letters, or with invisible characters in between.
func appendDefused(dst []byte, text string) []byte {
	const wide = "［" // the only other character that narrow takes for a bracket
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

// markerPrefixLen returns the length of a marker's opening at the start of the text, in bytes; 0 if there is none.
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

// foldWidthAndCase returns the ASCII form of a letter of any case or width.
func foldWidthAndCase(r rune) rune {
	if '！' <= r && r <= '～' {
		r -= '！' - '!'
	}
	return unicode.ToUpper(r)
}

// isInvisible reports whether a character is invisible or only a gap.
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me, unicode.Z) || r == utf8.RuneError ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// markerLinesSize is the usual size of the lines of a marker, in bytes.
const markerLinesSize = 144

// markResult returns the result of a method with every text marked: in the content of a tool's result, also inside a
// task, and in the contents of a resource that is not a page. Prompts are inspected but not marked, since a person
// chose them. If rules were met, the result names them in its "_meta".
func (f *marker) markResult(method string, result json.RawMessage) json.RawMessage {
	result = f.appendResult(make([]byte, 0, len(result)+markerLinesSize), method, result)
	f.inspectJoined()
	if len(f.met) == 0 {
		return result
	}
	return rawjson.Apply(result, rawjson.Put(rawjson.AppendStrings(nil, f.met...), "_meta", mcp.MetaFlagged))
}

// inspectJoined inspects consecutive texts as one, because a model reads them as one and an instruction may span two.
// Of long texts it inspects the beginning and the end.
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

// appendResult appends the result with its texts in readable form.
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

// appendEach appends a list, with one for each element. Another value in place of a list counts as its only element, as
// some parsers treat it.
func appendEach(dst []byte, list json.RawMessage, one func([]byte, json.RawMessage) []byte) []byte {
	if isObject(list) {
		return one(dst, list)
	}
	return rawjson.AppendArrayFunc(dst, list, one)
}

// markError returns an error object with its message marked. Its rules are known already.
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

// appendMessage inspects the texts of a prompt's message, which has one or several content blocks.
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

// appendInspected inspects the texts of a block and of a resource in it.
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

// appendBlock marks a content block, and the resource in it.
func (f *marker) appendBlock(dst []byte, block json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, block, func(dst []byte, m rawjson.Member) []byte {
		if isNamed(m, "resource") {
			return appendEach(dst, m.Value, f.appendObject)
		}
		return f.appendMember(dst, m)
	})
}

// appendObject marks each "text" of an object.
func (f *marker) appendObject(dst []byte, object json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, object, f.appendMember)
}

// appendMember appends a member: "text" is marked, also if it is repeated, since parsers disagree about which one
// counts. Others stay unchanged.
func (f *marker) appendMember(dst []byte, m rawjson.Member) []byte {
	if isNamed(m, "text") {
		if text, ok := rawjson.DecodeString(m.Value); ok {
			return f.appendMarked(dst, text)
		}
	}
	return append(dst, m.Value...)
}
