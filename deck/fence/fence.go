// Package fence marks what a server answered as foreign text, for a model that is to read it: between two lines that name
// the server and carry a word which nobody could know before.
//
// It promises that no answer, whatever is in it, has a line that ends its fence early or begins another one; that this
// holds for each beginning of a fenced text too, so that who cuts it cuts off the end and opens nothing; and that of a
// result nothing changes but the texts that are fenced. What is not for reading (structured content, images, pages of MCP
// Apps) stays as it is.
package fence

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Wanted says whether a caller is to have results of a server fenced. row is what the server's row says, nil for nothing;
// always is what holds for this caller where the row says nothing. A model of our own reads foreign text in no other way.
func Wanted(caller drawbridge.Caller, row *bool, always bool) bool {
	if row != nil {
		return *row
	}
	return always || caller.Kind == drawbridge.Agent
}

// A Look gives a text as a model may read it, and the rules that it met.
type Look func(text string) (shown string, rules []string)

// A Fence stands around the texts of one answer. It is for one goroutine.
type Fence struct {
	begin, end string
	// page says that the answer is a page of MCP Apps.
	page bool
	look Look
	// met are the rules that the texts of the answer met, each once.
	met []string
}

// New makes the fence of one answer: of that tool, or of the resource with that URI, on that server. Each has a word of its
// own, of 130 random bits. Each text stands there as look gives it, and its line names the rules that it met; nil leaves texts as
// they are.
func New(server drawbridge.ServerID, tool string, look Look) *Fence {
	f := with(rand.Text(), string(server), tool)
	f.look = look
	return f
}

func with(nonce, server, tool string) *Fence {
	return &Fence{
		begin: opening + nonce + "::BEGIN server=" + plain(server) + " tool=" + plain(tool) + "]\n",
		end:   "\n" + opening + nonce + "::END]",
		page:  strings.HasPrefix(tool, "ui://"),
	}
}

// opening begins both lines. In a text it becomes defused, which reads alike and is none.
const (
	opening = "[TOOL_OUTPUT::"
	defused = `[TOOL_OUTPUT\u003a\u003a`
)

// mostPlain is how many bytes of a name are in a line.
const mostPlain = 128

// plain gives a name without what could end the line it stands in, or look like an end.
func plain(name string) string {
	inLine := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.' || r == '/'
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
	return name[:min(len(name), mostPlain)]
}

// Text puts the fence around a text.
func (f *Fence) Text(text string) string {
	text, rules := f.read(text)
	var b strings.Builder
	b.Grow(len(f.begin) + len(text) + len(f.end))
	if len(rules) == 0 {
		b.WriteString(f.begin)
	} else {
		b.WriteString(strings.TrimSuffix(f.begin, "]\n") + " flagged=" + strings.Join(rules, ",") + "]\n")
	}
	writeDefused(&b, text)
	b.WriteString(f.end)
	return b.String()
}

// read gives a text as it may be read, and keeps the rules that it met.
func (f *Fence) read(text string) (shown string, rules []string) {
	if f.look == nil {
		return text, nil
	}
	shown, rules = f.look(text)
	for _, rule := range rules {
		if !slices.Contains(f.met, rule) {
			f.met = append(f.met, rule)
		}
	}
	return shown, rules
}

// Met are the rules that the texts of the results met which were fenced, each once; nil is none.
func (f *Fence) Met() []string { return f.met }

// writeDefused writes a text in which nothing begins a line of a fence, also where it only looks so: in small letters, in
// wide ones, with something unseen in between.
func writeDefused(b *strings.Builder, text string) {
	const wide = "［" // the only other character that narrow takes for a bracket
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '[' && (text[i] != wide[0] || !strings.HasPrefix(text[i:], wide)) {
			continue
		}
		if n := opens(text[i:]); n > 0 {
			b.WriteString(text[from:i])
			b.WriteString(defused)
			from = i + n
			i = from - 1
		}
	}
	b.WriteString(text[from:])
}

// opens gives how many bytes of the text say what a fence's line begins with; 0 where it does not begin so.
func opens(text string) int {
	want := opening
	for i, r := range text {
		if want == "" {
			return i
		}
		switch narrow(r) {
		case rune(want[0]):
			want = want[1:]
		default:
			if !unseen(r) {
				return 0
			}
		}
	}
	if want != "" {
		return 0
	}
	return len(text)
}

// narrow gives the ASCII character that a letter of any case or width stands for.
func narrow(r rune) rune {
	if '！' <= r && r <= '～' {
		r -= '！' - '!'
	}
	return unicode.ToUpper(r)
}

// unseen says whether a character leaves no trace, or only a gap.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me, unicode.Z) || r == utf8.RuneError || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// Result gives what a method answered with the fence around each text in it: in the content of a tool's result, also where
// a task has it, and in the contents of a resource that is no page. The texts of a prompt get no fence, since a person chose to
// have them said; they are looked at, as the others are. Where rules were met the result names them in its "_meta".
func (f *Fence) Result(method string, result json.RawMessage) json.RawMessage {
	result = f.texted(method, result)
	if len(f.met) == 0 {
		return result
	}
	return wire.Apply(result, wire.Put(wire.AppendTexts(nil, f.met...), "_meta", wire.MetaFlagged))
}

// texted is the result with its texts as they are to be read.
func (f *Fence) texted(method string, result json.RawMessage) json.RawMessage {
	return wire.EachValue(result, func(m wire.Member) json.RawMessage {
		switch {
		case m.Is("content") && (method == wire.MethodToolsCall || method == wire.MethodTasksResult):
			return wire.EachElement(m.Value, f.block)
		case m.Is("result") && method == wire.MethodTasksGet:
			return f.texted(wire.MethodToolsCall, m.Value)
		case m.Is("contents") && method == wire.MethodResourcesRead && !f.page:
			return wire.EachElement(m.Value, f.texts)
		case m.Is("messages") && method == wire.MethodPromptsGet:
			return wire.EachElement(m.Value, f.message)
		}
		return m.Value
	})
}

// message looks at the texts of a prompt's message: one block of content, or several.
func (f *Fence) message(message json.RawMessage) json.RawMessage {
	return wire.EachValue(message, func(m wire.Member) json.RawMessage {
		switch {
		case !m.Is("content"):
			return m.Value
		case len(m.Value) > 0 && m.Value[0] == '[':
			return wire.EachElement(m.Value, f.spoken)
		}
		return f.spoken(m.Value)
	})
}

// spoken looks at the texts of a block, and of a resource in it.
func (f *Fence) spoken(block json.RawMessage) json.RawMessage {
	return wire.EachValue(block, func(m wire.Member) json.RawMessage {
		if m.Is("resource") {
			return f.spoken(m.Value)
		}
		if m.Is("text") {
			if text, ok := wire.Text(m.Value); ok {
				if shown, _ := f.read(text); shown != text {
					return wire.Quote(shown)
				}
			}
		}
		return m.Value
	})
}

// block fences a block of content, and what is in one that holds a resource.
func (f *Fence) block(block json.RawMessage) json.RawMessage {
	return wire.EachValue(block, func(m wire.Member) json.RawMessage {
		if m.Is("resource") {
			return f.texts(m.Value)
		}
		return f.value(m)
	})
}

// texts fences each "text" of an object.
func (f *Fence) texts(object json.RawMessage) json.RawMessage { return wire.EachValue(object, f.value) }

// value gives what a member is to have: "text" a fence, also where it is there twice, since readers do not agree which of them
// counts; any other what it had.
func (f *Fence) value(m wire.Member) json.RawMessage {
	if m.Is("text") {
		if text, ok := wire.Text(m.Value); ok {
			text = f.Text(text)
			return wire.AppendQuoted(make([]byte, 0, len(text)+len(text)/16+16), text) // with room for what is to be escaped
		}
	}
	return m.Value
}
