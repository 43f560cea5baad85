package fence

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Held is an answer that its caller is not given.
type Held struct {
	// Principal called Card of Server by Method.
	Principal, Card, Method string
	Server                  drawbridge.ServerID
	// Rules are those that it met, Result is all of it, as the server sent it but for URIs that are known by others here.
	Rules  []string
	Result json.RawMessage
}

// A Holder keeps answers for a person to read.
type Holder interface {
	// Hold keeps an answer, and gives the name by which a person finds it. After an error it is lost, and not given to its
	// caller all the same.
	Hold(ctx context.Context, h Held) (id string, err error)
}

// A Desk is where the answers of servers pass on their way to who called. All but Always may be nil.
type Desk struct {
	// Always says which callers are given answers fenced of servers whose rows do not say.
	Always func(drawbridge.Caller) bool
	Look   Look
	Holder Holder
	// Note has on record what was done to an answer of a server's tool.
	Note func(server drawbridge.ServerID, tool, rule, why string)
	Log  *slog.Logger

	words words
	seen  seen
}

// A Pass is what is done to one answer. The zero Pass does nothing.
type Pass struct {
	desk           *Desk
	call           drawbridge.Call
	server         drawbridge.ServerID
	card, tool     string
	fenced, barred bool
}

// Pass says what is done to the answer to a call of a server's tool, which callers know as card: row is what the server's row says
// of fences, see Wanted; hold says that its answers are held back in which rules are met.
func (d *Desk) Pass(call drawbridge.Call, server drawbridge.ServerID, card, tool string, row *bool, hold bool) Pass {
	return Pass{d, call, server, card, tool, Wanted(call.Caller, row, d.Always(call.Caller)), hold}
}

// Take gives an answer as its caller is given it. The error is a *drawbridge.Fault, for one that is held back.
func (p Pass) Take(ctx context.Context, result json.RawMessage) (json.RawMessage, error) {
	if !p.fenced && !p.barred {
		return result, nil
	}
	f := p.fence()
	shown := f.result(p.call.Method, result)
	if p.barred {
		f.rest(p.call.Method, result)
	}
	switch met := f.met; {
	case len(met) == 0:
	case p.barred:
		p.desk.Note(p.server, p.tool, "held", "its answer met "+strings.Join(met, ", "))
		return nil, p.hold(ctx, met, result)
	default:
		p.desk.Note(p.server, p.tool, "flagged", "its answer met "+strings.Join(met, ", "))
	}
	if !p.fenced {
		return result, nil
	}
	return shown, nil
}

// fence makes the fence of the answer.
func (p Pass) fence() *fence {
	return newFence(p.desk.words.next(), p.server, p.tool, p.desk.seen.before(p.call.Caller.Principal, p.desk.Look))
}

// Fail gives what its caller is told of a call that failed: the words of its server in a fence, where its answers have one, and of one
// whose answers are held back nothing of them, where they meet a rule.
func (p Pass) Fail(ctx context.Context, err error) error {
	fault, ok := errors.AsType[*drawbridge.Fault](err)
	if !p.barred && !p.fenced || !ok || len(fault.Raw) == 0 {
		return err
	}
	f := p.fence()
	f.each(fault.Raw)
	switch {
	case len(f.met) == 0:
	case p.barred:
		p.desk.Note(p.server, p.tool, "held", "its answer met "+strings.Join(f.met, ", "))
		return p.hold(ctx, f.met, fault.Raw)
	default:
		p.desk.Note(p.server, p.tool, "flagged", "its answer met "+strings.Join(f.met, ", "))
	}
	if !p.fenced {
		return err
	}
	shown := *fault
	shown.Raw = f.failure(fault.Raw)
	return &shown
}

// hold keeps an answer back. The fault says what was met and where a person reads it, and nothing of what the server said.
func (p Pass) hold(ctx context.Context, met []string, result json.RawMessage) error {
	f := &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: fmt.Sprintf("%s %.200s", p.call.Method, p.card),
		Err:  fmt.Errorf("the call was made, and its answer is held back: it met %s", strings.Join(met, ", ")),
		Next: "do not call this again: the answer could not be kept, and the log of the gateway says why",
	}
	if p.desk.Holder == nil {
		return f
	}
	h := Held{Principal: p.call.Caller.Principal, Card: p.card, Method: p.call.Method, Server: p.server, Rules: met, Result: result}
	id, err := p.desk.Holder.Hold(context.WithoutCancel(ctx), h)
	if err != nil {
		p.desk.Log.Error("an answer that is held back could not be kept", "server", p.server, "card", p.card, "err", err)
		return f
	}
	f.Next = "do not call this again: a person can read the answer with drawbridge shield results " + id
	return f
}

// rest looks at the texts of a result that its method has none fenced of, names among them: structured content, "_meta", what a
// link says of itself, what a task says of how it is, and whatever stands where it does not belong.
func (f *fence) rest(method string, result json.RawMessage) {
	if !object(result) {
		f.each(result)
		return
	}
	for m := range wire.Members(result) {
		switch {
		case named(m, "content") && (method == wire.MethodToolsCall || method == wire.MethodTasksResult):
			f.elements(m.Value, f.beside)
		case named(m, "contents") && method == wire.MethodResourcesRead:
			if !f.page {
				f.elements(m.Value, f.others)
			}
		case named(m, "messages") && method == wire.MethodPromptsGet:
			f.elements(m.Value, f.around)
		case named(m, "result") && method == wire.MethodTasksGet:
			f.rest(wire.MethodToolsCall, m.Value)
		default:
			f.each(m.Name)
			f.each(m.Value)
		}
	}
}

// elements has each object of a list looked at in its own way, and all of what is no list or no object.
func (f *fence) elements(list json.RawMessage, look func(json.RawMessage)) {
	if object(list) {
		look(list)
		return
	}
	if len(list) == 0 || list[0] != '[' {
		f.each(list)
		return
	}
	for element := range wire.Elements(list) {
		if object(element) {
			look(element)
		} else {
			f.each(element)
		}
	}
}

// named says whether a member is one of that name, or one that readers who are not strict take for it.
func named(m wire.Member, name string) bool { return m.Is(name) || m.Resembles(name) }

func object(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

// around looks at what a prompt's message has beside its texts.
func (f *fence) around(message json.RawMessage) {
	for m := range wire.Members(message) {
		switch {
		case !named(m, "content"):
			f.each(m.Name)
			f.each(m.Value)
		case object(m.Value):
			f.beside(m.Value)
		default:
			f.elements(m.Value, f.beside)
		}
	}
}

// beside looks at what a block of content has, or a resource in it, beside its text and its bytes.
func (f *fence) beside(block json.RawMessage) {
	for m := range wire.Members(block) {
		if named(m, "resource") && object(m.Value) {
			f.others(m.Value)
		} else {
			f.other(m)
		}
	}
}

// others looks at what an object has beside its text and its bytes.
func (f *fence) others(object json.RawMessage) {
	for m := range wire.Members(object) {
		f.other(m)
	}
}

func (f *fence) other(m wire.Member) {
	switch isText := len(m.Value) > 0 && m.Value[0] == '"'; {
	case isText && named(m, "text"):
	case isText && (named(m, "data") || named(m, "blob")):
		if text := written(m.Value); text != "" {
			f.read(text)
		}
	default:
		f.each(m.Name)
		f.each(m.Value)
	}
}

// written gives the text that bytes in Base64 begin as, whatever they are said to be; empty for pictures, sounds and other bytes.
func written(value json.RawMessage) string {
	const enough = 2048 // of characters, to know pictures and sounds by
	code, _ := wire.Text(value)
	head := bytesOf(code[:min(len(code), enough)])
	if wide := utf16In(head); wide != nil {
		return wide(bytesOf(code))
	}
	for range utf8.UTFMax - 1 { // a character that was cut in two
		if len(code) > enough && len(head) > 0 && !utf8.Valid(head) {
			head = head[:len(head)-1]
		}
	}
	if !utf8.Valid(head) || bytes.IndexByte(head, 0) >= 0 {
		return ""
	}
	return strings.ToValidUTF8(string(bytesOf(code)), "\ufffd")
}

// bytesOf gives what Base64 stands for, in any of its alphabets and with or without padding, up to where it is none.
func bytesOf(code string) []byte {
	code = strings.NewReplacer("=", "", "\n", "", "\r", "", " ", "", "\t", "", "-", "+", "_", "/").Replace(code)
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(code)))
	n, _ := base64.RawStdEncoding.Decode(out, []byte(code))
	return out[:n]
}

// utf16In gives what reads bytes that begin as UTF-16 does, with its mark or as text in letters of ASCII would; nil for all others.
func utf16In(head []byte) func([]byte) string {
	little, big, all := 0, 0, len(head)/2
	for i := 0; i+1 < len(head); i += 2 {
		switch {
		case head[i] == 0 && head[i+1] != 0:
			big++
		case head[i] != 0 && head[i+1] == 0:
			little++
		}
	}
	order := binary.ByteOrder(nil)
	switch {
	case all == 0:
	case head[0] == 0xFF && head[1] == 0xFE, little*4 >= all*3:
		order = binary.LittleEndian
	case head[0] == 0xFE && head[1] == 0xFF, big*4 >= all*3:
		order = binary.BigEndian
	}
	if order == nil {
		return nil
	}
	return func(b []byte) string {
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = order.Uint16(b[2*i:])
		}
		return string(utf16.Decode(units))
	}
}

// each looks at all texts of a value, at any depth, in one go.
func (f *fence) each(value json.RawMessage) {
	for i := 0; i < len(value); i++ {
		if value[i] != '"' {
			continue
		}
		end := i + 1
		for ; end < len(value) && value[end] != '"'; end++ {
			if value[end] == '\\' {
				end++
			}
		}
		raw := value[i:min(end+1, len(value))]
		i = end
		if text, ok := wire.Text(raw); ok && !own(text) {
			f.read(text)
		}
	}
}

// own says whether a text is a word of the protocol's own, which nearly all results have.
func own(text string) bool {
	switch text {
	case "type", "text", "image", "audio", "resource", "resource_link", "uri", "mimeType", "structuredContent", "isError", "_meta", "role", "user",
		"assistant", "annotations", "text/plain", "application/json", "resultType", "complete":
		return true
	}
	return false
}
