package spotlight

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
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A HeldResult is an answer that its caller is not given.
type HeldResult struct {
	// Principal called Card of Server by Method.
	Principal, Card, Method string
	Server                  drawbridge.ServerID
	// Rules are those that it met, Result is all of it, as the server sent it but for URIs that are known by others
	// here.
	Rules  []string
	Result json.RawMessage
}

// A ResultHolder keeps answers for a person to read.
type ResultHolder interface {
	// Hold keeps an answer, and gives the name by which a person finds it. After an error it is lost, and not given to
	// its caller all the same.
	Hold(ctx context.Context, h HeldResult) (id string, err error)
}

// A ResultGuard is where the answers of servers pass on their way to who called. All but Always may be nil.
type ResultGuard struct {
	// MarkFor says which callers are given answers fenced of servers whose rows do not say.
	MarkFor func(drawbridge.Caller) bool
	Inspect Inspector
	Holder  ResultHolder
	// RecordAction has on record what was done to an answer of a server's tool.
	RecordAction func(server drawbridge.ServerID, tool, rule, why string)
	Log          *slog.Logger

	words     wordSource
	seenTexts seenTexts
}

// A ResultFilter is what is done to one answer. The zero Pass does nothing.
type ResultFilter struct {
	guard        *ResultGuard
	call         drawbridge.Call
	server       drawbridge.ServerID
	card, tool   string
	marks, holds bool
}

// FilterFor says what is done to the answer to a call of a server's tool, which callers know as card: row is what the
// server's row says of fences, see Wanted; hold says that its answers are held back in which rules are met.
func (d *ResultGuard) FilterFor(call drawbridge.Call, server drawbridge.ServerID, card, tool string, row *bool,
	hold bool) ResultFilter {
	return ResultFilter{d, call, server, card, tool, ShouldMark(call.Caller, row, d.MarkFor(call.Caller)), hold}
}

// Apply gives an answer as its caller is given it. The error is a *drawbridge.Fault, for one that is held back.
func (p ResultFilter) Apply(ctx context.Context, result json.RawMessage) (json.RawMessage, error) {
	if !p.marks && !p.holds {
		return result, nil
	}
	f := p.newMarker()
	shown := f.markResult(p.call.Method, result)
	if p.holds {
		f.inspectUnmarked(p.call.Method, result)
	}
	switch met := f.met; {
	case len(met) == 0:
	case p.holds:
		p.guard.RecordAction(p.server, p.tool, "held", "its answer met "+strings.Join(met, ", "))
		return nil, p.holdBack(ctx, met, result)
	default:
		p.guard.RecordAction(p.server, p.tool, "flagged", "its answer met "+strings.Join(met, ", "))
	}
	if !p.marks {
		return result, nil
	}
	return shown, nil
}

// newMarker makes the fence of the answer.
func (p ResultFilter) newMarker() *marker {
	return newMarker(p.guard.words.next(), p.server, p.tool, p.guard.seenTexts.skipSeen(p.call.Caller.Principal,
		p.guard.Inspect))
}

// ApplyToError gives what its caller is told of a call that failed: the words of its server in a fence, where its
// answers have one, and of one whose answers are held back nothing of them, where they meet a rule.
func (p ResultFilter) ApplyToError(ctx context.Context, err error) error {
	fault, ok := errors.AsType[*drawbridge.Fault](err)
	if !p.holds && !p.marks || !ok || len(fault.Raw) == 0 {
		return err
	}
	f := p.newMarker()
	f.inspectTexts(fault.Raw)
	switch {
	case len(f.met) == 0:
	case p.holds:
		p.guard.RecordAction(p.server, p.tool, "held", "its answer met "+strings.Join(f.met, ", "))
		return p.holdBack(ctx, f.met, fault.Raw)
	default:
		p.guard.RecordAction(p.server, p.tool, "flagged", "its answer met "+strings.Join(f.met, ", "))
	}
	if !p.marks {
		return err
	}
	shown := *fault
	shown.Raw = f.markError(fault.Raw)
	return &shown
}

// holdBack keeps an answer back. The fault says what was met and where a person reads it, and nothing of what the
// server said.
func (p ResultFilter) holdBack(ctx context.Context, met []string, result json.RawMessage) error {
	f := &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: fmt.Sprintf("%s %.200s",
			p.call.Method, p.card),
		Err:  fmt.Errorf("the call was made, and its answer is held back: it met %s", strings.Join(met, ", ")),
		Next: "do not call this again: the answer could not be kept, and the log of the gateway says why",
	}
	if p.guard.Holder == nil {
		return f
	}
	h := HeldResult{Principal: p.call.Caller.Principal, Card: p.card, Method: p.call.Method, Server: p.server,
		Rules: met, Result: result}
	id, err := p.guard.Holder.Hold(context.WithoutCancel(ctx), h)
	if err != nil {
		p.guard.Log.Error("an answer that is held back could not be kept", "server", p.server, "card",
			p.card, "err", err)
		return f
	}
	f.Next = "do not call this again: a person can read the answer with drawbridge shield results " + id
	return f
}

// inspectUnmarked looks at the texts of a result that its method has none fenced of, names among them: structured
// content, "_meta", what a link says of itself, what a task says of how it is, and whatever stands where it does not
// belong.
func (f *marker) inspectUnmarked(method string, result json.RawMessage) {
	if !isObject(result) {
		f.inspectTexts(result)
		return
	}
	for m := range rawjson.Members(result) {
		switch {
		case isNamed(m, "content") && (method == mcp.MethodToolsCall || method == mcp.MethodTasksResult):
			f.eachElement(m.Value, f.inspectBlock)
		case isNamed(m, "contents") && method == mcp.MethodResourcesRead:
			if !f.isAppPage {
				f.eachElement(m.Value, f.inspectObject)
			}
		case isNamed(m, "messages") && method == mcp.MethodPromptsGet:
			f.eachElement(m.Value, f.inspectMessage)
		case isNamed(m, "result") && method == mcp.MethodTasksGet:
			f.inspectUnmarked(mcp.MethodToolsCall, m.Value)
		default:
			f.inspectTexts(m.Name)
			f.inspectTexts(m.Value)
		}
	}
}

// eachElement has each object of a list looked at in its own way, and all of what is no list or no object.
func (f *marker) eachElement(list json.RawMessage, look func(json.RawMessage)) {
	if isObject(list) {
		look(list)
		return
	}
	if len(list) == 0 || list[0] != '[' {
		f.inspectTexts(list)
		return
	}
	for element := range rawjson.Elements(list) {
		if isObject(element) {
			look(element)
		} else {
			f.inspectTexts(element)
		}
	}
}

// isNamed says whether a member is one of that name, or one that readers who are not strict take for it.
func isNamed(m rawjson.Member, name string) bool { return m.HasName(name) || m.ResemblesName(name) }

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

// inspectMessage looks at what a prompt's message has beside its texts.
func (f *marker) inspectMessage(message json.RawMessage) {
	for m := range rawjson.Members(message) {
		switch {
		case !isNamed(m, "content"):
			f.inspectTexts(m.Name)
			f.inspectTexts(m.Value)
		case isObject(m.Value):
			f.inspectBlock(m.Value)
		default:
			f.eachElement(m.Value, f.inspectBlock)
		}
	}
}

// inspectBlock looks at what a block of content has, or a resource in it, beside its text and its bytes.
func (f *marker) inspectBlock(block json.RawMessage) {
	for m := range rawjson.Members(block) {
		if isNamed(m, "resource") && isObject(m.Value) {
			f.inspectObject(m.Value)
		} else {
			f.inspectMember(m)
		}
	}
}

// inspectObject looks at what an object has beside its text and its bytes.
func (f *marker) inspectObject(object json.RawMessage) {
	for m := range rawjson.Members(object) {
		f.inspectMember(m)
	}
}

func (f *marker) inspectMember(m rawjson.Member) {
	switch isText := len(m.Value) > 0 && m.Value[0] == '"'; {
	case isText && isNamed(m, "text"):
	case isText && (isNamed(m, "data") || isNamed(m, "blob")):
		if text := decodeTextBytes(m.Value); text != "" {
			f.inspect(text)
		}
	default:
		f.inspectTexts(m.Name)
		f.inspectTexts(m.Value)
	}
}

// decodeTextBytes gives the text that bytes in Base64 begin as, whatever they are said to be; empty for pictures,
// sounds and other bytes.
func decodeTextBytes(value json.RawMessage) string {
	const enough = 2048 // of characters, to know pictures and sounds by
	code, _ := rawjson.DecodeString(value)
	head := decodeBase64(code[:min(len(code), enough)])
	if wide := utf16Decoder(head); wide != nil {
		return wide(decodeBase64(code))
	}
	for range utf8.UTFMax - 1 { // a character that was cut in two
		if len(code) > enough && len(head) > 0 && !utf8.Valid(head) {
			head = head[:len(head)-1]
		}
	}
	if !utf8.Valid(head) || bytes.IndexByte(head, 0) >= 0 {
		return ""
	}
	return strings.ToValidUTF8(string(decodeBase64(code)), "\ufffd")
}

// decodeBase64 gives what Base64 stands for, in any of its alphabets and with or without padding, up to where it is
// none.
func decodeBase64(code string) []byte {
	code = strings.NewReplacer("=", "", "\n", "", "\r", "", " ", "", "\t", "", "-", "+", "_", "/").Replace(code)
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(code)))
	n, _ := base64.RawStdEncoding.Decode(out, []byte(code))
	return out[:n]
}

// utf16Decoder gives what reads bytes that begin as UTF-16 does, with its mark or as text in letters of ASCII would;
// nil for all others.
func utf16Decoder(head []byte) func([]byte) string {
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

// inspectTexts looks at all texts of a value, at any depth, in one go.
func (f *marker) inspectTexts(value json.RawMessage) {
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
		if text, ok := rawjson.DecodeString(raw); ok && !isProtocolWord(text) {
			f.inspect(text)
		}
	}
}

// isProtocolWord says whether a text is a word of the protocol's own, which nearly all results have.
func isProtocolWord(text string) bool {
	switch text {
	case "type", "text", "image", "audio", "resource", "resource_link", "uri", "mimeType", "structuredContent",
		"isError", "_meta", "role", "user",
		"assistant", "annotations", "text/plain", "application/json", "resultType", "complete":
		return true
	}
	return false
}
