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
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A HeldResult is a result that is withheld from its caller.
type HeldResult struct {
	// Principal called Card of Server by Method.
	Principal, Card, Method string
	Server                  drawbridge.ServerID
	// Rules are the rules that it met, and Result is the whole result as the server sent it, with public URIs.
	Rules  []string
	Result json.RawMessage
}

// A ResultHolder keeps results for a person to read.
type ResultHolder interface {
	// Hold keeps a result and returns the id by which a person finds it. After an error the result is lost, and its
	// caller still does not get it.
	Hold(ctx context.Context, h HeldResult) (id string, err error)
}

// A ResultGuard marks, inspects and holds back the results of servers on their way to the caller. Every field except
// MarkFor may be nil.
type ResultGuard struct {
	// MarkFor reports whether the caller gets marked results of servers without a setting.
	MarkFor func(drawbridge.Caller) bool
	Inspect Inspector
	Holder  ResultHolder
	// RecordAction records a change to a result of a server's tool.
	RecordAction func(server drawbridge.ServerID, tool, rule, why string)
	Log          *slog.Logger
	// Scanner examines the results of servers with Scan after they were passed on.
	Scanner *ResultScanner

	words     wordSource
	seenTexts seenTexts
}

// A ResultFilter is the treatment of one result. The zero value changes nothing.
type ResultFilter struct {
	guard        *ResultGuard
	call         drawbridge.Call
	server       drawbridge.ServerID
	card, tool   string
	marks, holds bool
	// scans reports that the result is examined after it was passed on.
	scans bool
}

// A ResultTreatment has the settings of a server for its results. The zero value leaves marking to the guard.
type ResultTreatment struct {
	// Mark decides whether results are marked, see [ShouldMark].
	Mark *bool
	// Hold withholds results that meet a rule. Scan examines results after they were passed on.
	Hold, Scan bool
}

// FilterFor returns the filter for the result of a call to a server's tool, whose public name is card.
func (d *ResultGuard) FilterFor(call drawbridge.Call, server drawbridge.ServerID, card, tool string,
	t ResultTreatment) ResultFilter {
	marks := ShouldMark(call.Caller, t.Mark, d.MarkFor(call.Caller))
	return ResultFilter{d, call, server, card, tool, marks, t.Hold, t.Scan && !t.Hold && d.Scanner != nil}
}

// Apply returns the result for its caller. The error is a *drawbridge.Fault for a result that is held back.
func (p ResultFilter) Apply(ctx context.Context, result json.RawMessage) (json.RawMessage, error) {
	if !p.marks && !p.holds {
		p.scanLater(ctx, result, false, nil)
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
	p.scanLater(ctx, result, false, f.met)
	return shown, nil
}

// scanLater queues the result of a server for the scanner. known are the rules that are recorded already.
func (p ResultFilter) scanLater(ctx context.Context, result json.RawMessage, isError bool, known []string) {
	if !p.scans {
		return
	}
	p.guard.Scanner.submit(waitingResult{
		server: p.server, result: result, isError: isError, known: known,
		about: FlaggedResult{CallID: audit.CallID(ctx), Principal: p.call.Caller.Principal, Card: p.card,
			Tool: p.tool, Method: p.call.Method},
	})
}

// newMarker returns the marker of the result.
func (p ResultFilter) newMarker() *marker {
	return newMarker(p.guard.words.next(), p.server, p.tool, p.guard.seenTexts.skipSeen(p.call.Caller.Principal,
		p.guard.Inspect))
}

// ApplyToError returns the error for the caller of a failed call. The server's texts are marked like results, and held
// back if they meet a rule.
func (p ResultFilter) ApplyToError(ctx context.Context, err error) error {
	fault, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || len(fault.Raw) == 0 {
		return err
	}
	if !p.holds && !p.marks {
		p.scanLater(ctx, fault.Raw, true, nil)
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
	p.scanLater(ctx, fault.Raw, true, f.met)
	shown := *fault
	shown.Raw = f.markError(fault.Raw)
	return &shown
}

// holdBack withholds a result. The fault names the rules and where a person can read the result, and contains no text
// of the server.
func (p ResultFilter) holdBack(ctx context.Context, met []string, result json.RawMessage) error {
	f := &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: fmt.Sprintf("%s %.200s",
			p.call.Method, p.card),
		Err:  fmt.Errorf("the call was made, and its answer is held back: it met %s", strings.Join(met, ", ")),
		Next: "do not call this again: the result could not be stored; see the log of the gateway",
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

// inspectUnmarked inspects the texts of a result that are not marked, member names included: structured content,
// "_meta", descriptions of links, the status of a task, and misplaced members.
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

// eachElement calls look for each object of a list and inspects all other values whole.
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

// isNamed reports whether a member has that name, or one that lenient parsers take for it.
func isNamed(m rawjson.Member, name string) bool { return m.HasName(name) || m.ResemblesName(name) }

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

// inspectMessage inspects a prompt's message except its texts.
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

// inspectBlock inspects a content block, or a resource in it, except its text and bytes.
func (f *marker) inspectBlock(block json.RawMessage) {
	for m := range rawjson.Members(block) {
		if isNamed(m, "resource") && isObject(m.Value) {
			f.inspectObject(m.Value)
		} else {
			f.inspectMember(m)
		}
	}
}

// inspectObject inspects an object except its text and bytes.
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

// decodeTextBytes returns the text at the beginning of Base64 bytes, whatever their declared type; empty for images,
// sounds and other binary data.
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

// decodeBase64 decodes Base64 of any alphabet, with or without padding, up to the first invalid character.
func decodeBase64(code string) []byte {
	code = strings.NewReplacer("=", "", "\n", "", "\r", "", " ", "", "\t", "", "-", "+", "_", "/").Replace(code)
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(code)))
	n, _ := base64.RawStdEncoding.Decode(out, []byte(code))
	return out[:n]
}

// utf16Decoder returns a decoder for bytes that begin like UTF-16, with a byte order mark or with ASCII letters; nil
// for others.
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

// inspectTexts inspects all texts of a value, at any depth, as one.
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

// isProtocolWord reports whether a text is a constant of the protocol, which nearly all results contain.
func isProtocolWord(text string) bool {
	switch text {
	case "type", "text", "image", "audio", "resource", "resource_link", "uri", "mimeType", "structuredContent",
		"isError", "_meta", "role", "user",
		"assistant", "annotations", "text/plain", "application/json", "resultType", "complete":
		return true
	}
	return false
}
