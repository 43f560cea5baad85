// Package spotlight marks what a server answered as foreign text, for a model that is to read it: between two lines
// that name the server and carry a word which nobody could know before.
//
// It promises that no answer, whatever is in it, has a line that ends its fence early or begins another one; that this
// holds for each beginning of a fenced text too, so that who cuts it cuts off the end and opens nothing; and that of a
// result nothing changes but the texts that are fenced. What is not for reading (structured content, images, pages of
// MCP Apps) stays as it is.
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

// ShouldMark says whether a caller is to have results of a server fenced. row is what the server's row says, nil for
// nothing; always is what holds for this caller where the row says nothing. A model of our own reads foreign text in
// no other way.
func ShouldMark(caller drawbridge.Caller, row *bool, always bool) bool {
	if row != nil {
		return *row
	}
	return always || caller.Kind == drawbridge.Agent
}

// A Inspector gives a text as a model may read it, and the rules that it met.
type Inspector func(text string) (shown string, rules []string)

// A marker stands around the texts of one answer. It is for one goroutine.
type marker struct {
	// word is what nobody could know before; server and tool stand in the first line, as plain has made them.
	word, server, tool string
	// isAppPage says that the answer is a page of MCP Apps.
	isAppPage bool
	inspector Inspector
	// met are the rules that the texts of the answer met, each once.
	met []string
	// texts are those that stand one after the other, in room as long as they are few.
	texts []string
	room  [4]string
}

// newMarker makes the fence of one answer, with a word of its own: of that tool, or of the resource with that URI, on
// that server. Each text stands there as look gives it, and its line names the rules that it met; nil leaves texts as
// they are.
func newMarker(word string, server drawbridge.ServerID, tool string, look Inspector) *marker {
	return &marker{word: word, server: safeName(string(server)), tool: safeName(tool),
		isAppPage: strings.HasPrefix(tool, "ui://"), inspector: look}
}

// opening begins both lines. In a text it becomes defused, which reads alike and is none.
const (
	markerPrefix  = "[TOOL_OUTPUT::"
	defusedPrefix = `[TOOL_OUTPUT\u003a\u003a`
)

// maxSafeName is how many bytes of a name are in a line.
const maxSafeName = 128

// safeName gives a name without what could end the line it stands in, or look like an end.
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

// appendMarked appends a text with the fence around it, as a JSON string. What the lines are made of needs no escapes.
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

// inspect gives a text as it may be read, and keeps the rules that it met.
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

// appendDefused appends a text, as a part of a JSON string, in which nothing begins a line of a fence, also where it
// only looks so: in small letters, in wide ones, with something unseen in between.
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

// markerPrefixLen gives how many bytes of the text say what a fence's line begins with; 0 where it does not begin so.
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

// foldWidthAndCase gives the ASCII character that a letter of any case or width stands for.
func foldWidthAndCase(r rune) rune {
	if '！' <= r && r <= '～' {
		r -= '！' - '!'
	}
	return unicode.ToUpper(r)
}

// isInvisible says whether a character leaves no trace, or only a gap.
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me, unicode.Z) || r == utf8.RuneError ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// markerLinesSize is how many bytes the lines of a fence usually take.
const markerLinesSize = 144

// markResult gives what a method answered with the fence around each text in it: in the content of a tool's result,
// also where a task has it, and in the contents of a resource that is no page. The texts of a prompt get no fence,
// since a person chose to have them said; they are looked at, as the others are. Where rules were met the result names
// them in its "_meta".
func (f *marker) markResult(method string, result json.RawMessage) json.RawMessage {
	result = f.appendResult(make([]byte, 0, len(result)+markerLinesSize), method, result)
	f.inspectJoined()
	if len(f.met) == 0 {
		return result
	}
	return rawjson.Apply(result, rawjson.Put(rawjson.AppendStrings(nil, f.met...), "_meta", mcp.MetaFlagged))
}

// inspectJoined looks at what texts say that stand one after the other: a model reads them as one, and an order may
// begin in one and end in another. Of long ones that is their beginning and their end.
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

// appendResult appends the result with its texts as they are to be read.
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

// appendEach appends a list with each of its elements as one is appended. One that stands there instead of a list is
// taken for its only element, as some readers do.
func appendEach(dst []byte, list json.RawMessage, one func([]byte, json.RawMessage) []byte) []byte {
	if isObject(list) {
		return one(dst, list)
	}
	return rawjson.AppendArrayFunc(dst, list, one)
}

// markError gives an error's object with a fence around what it says to people. Its rules are known already.
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

// appendMessage looks at the texts of a prompt's message: one block of content, or several.
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

// appendInspected looks at the texts of a block, and of a resource in it.
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

// appendBlock fences a block of content, and what is in one that holds a resource.
func (f *marker) appendBlock(dst []byte, block json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, block, func(dst []byte, m rawjson.Member) []byte {
		if isNamed(m, "resource") {
			return appendEach(dst, m.Value, f.appendObject)
		}
		return f.appendMember(dst, m)
	})
}

// appendObject fences each "text" of an object.
func (f *marker) appendObject(dst []byte, object json.RawMessage) []byte {
	return rawjson.AppendObjectFunc(dst, object, f.appendMember)
}

// appendMember appends what a member is to have: "text" a fence, also where it is there twice, since readers do not
// agree which of them counts; any other what it had.
func (f *marker) appendMember(dst []byte, m rawjson.Member) []byte {
	if isNamed(m, "text") {
		if text, ok := rawjson.DecodeString(m.Value); ok {
			return f.appendMarked(dst, text)
		}
	}
	return append(dst, m.Value...)
}
