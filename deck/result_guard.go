package deck

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

// A HeldResult is a result that matched a rule and is therefore withheld from its caller.
type HeldResult struct {
	// Principal is the caller, Card the called name, and Method the MCP method.
	Principal, Card, Method string
	Server                  drawbridge.ServerID
	// Rules are the names of the rules that the result matched. Result is the whole result of the server. Its URIs are
	// already replaced by those that the gateway shows to clients.
	Rules  []string
	Result json.RawMessage
}

// A ResultHolder stores results for a person to read.
type ResultHolder interface {
	// Hold stores a result and returns the id by which a person finds the result. If Hold returns an error, the result
	// is lost, and the caller still does not get it.
	Hold(ctx context.Context, h HeldResult) (id string, err error)
}

// A ResultGuard marks, inspects and withholds the results of servers before they are sent to the caller. MarkFor is
// required. RecordAction is required if Inspect is set, and Log if Holder is set. The other fields may be nil.
type ResultGuard struct {
	// MarkFor reports whether the caller gets marked results of servers whose configuration has no mark setting.
	MarkFor func(drawbridge.Caller) bool
	Inspect Inspector
	Holder  ResultHolder
	// RecordAction logs that a result of a server's tool matched rules. rule is "held" if the result was withheld, and
	// "flagged" otherwise. why names the matched rules.
	RecordAction func(server drawbridge.ServerID, tool, rule, why string)
	Log          *slog.Logger
	// Scanner examines results after they were sent to the caller, for servers with the setting Scan.
	Scanner *ResultScanner

	words     wordSource
	seenTexts seenTexts
}

// A ResultFilter processes the result of one call. The zero value returns the result unchanged.
type ResultFilter struct {
	guard        *ResultGuard
	call         drawbridge.Call
	server       drawbridge.ServerID
	card, tool   string
	marks, holds bool
	// marksForOrigin is marks for the caller that started the script, if the call is one of a script.
	marksForOrigin bool
	// scans reports whether the Scanner examines the result after it was sent to the caller.
	scans bool
}

// A ResultTreatment contains the settings of a server for its results. The zero value leaves marking to MarkFor of the
// [ResultGuard].
type ResultTreatment struct {
	// Mark determines whether results are marked, see [ShouldMark].
	Mark *bool
	// Hold withholds results that match a rule. Scan examines results after they were sent to the caller; it has no
	// effect if Hold is set.
	Hold, Scan bool
}

// FilterFor returns the filter for the result of a call of a server's tool. card is the tool's public name. A script
// parses results, so they are not marked for it; the result of the script itself is marked.
func (d *ResultGuard) FilterFor(call drawbridge.Call, server drawbridge.ServerID, card, tool string,
	t ResultTreatment) ResultFilter {
	origin := call.Caller
	origin.Kind = origin.OriginKind()
	marksForOrigin := ShouldMark(origin, t.Mark, d.MarkFor(origin))
	return ResultFilter{guard: d, call: call, server: server, card: card, tool: tool,
		marks: marksForOrigin && call.Caller.Kind != drawbridge.Sandbox, marksForOrigin: marksForOrigin,
		holds: t.Hold, scans: t.Scan && !t.Hold && d.Scanner != nil}
}

// MarksForOrigin reports whether the result would be marked for the caller that started the script. For a call that is
// not one of a script it reports whether the result is marked.
func (p ResultFilter) MarksForOrigin() bool { return p.marksForOrigin }

// Apply returns the result in the form that the caller gets. If the result is withheld, Apply returns a
// *drawbridge.Fault.
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

// scanLater adds the result of a server to the scanner's queue. known are the names of the rules that Apply has already
// logged for the result.
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

// newMarker returns a marker for the result.
func (p ResultFilter) newMarker() *marker {
	return newMarker(p.guard.words.next(), p.server, p.tool, p.guard.seenTexts.skipSeen(p.call.Caller.Principal,
		p.guard.Inspect))
}

// ApplyToError returns the error that the caller of a failed call gets. The server's texts in the error are inspected
// and marked like the texts of a result. If they match a rule and results of the server are held, the error is
// withheld.
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

// holdBack stores a withheld result and returns the fault that the caller gets in its place. The fault names the
// matched rules and the command with which a person can read the result. It contains no text of the server.
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

// inspectUnmarked inspects those texts of a result that markResult does not mark, including member names. Examples are
// structured content, "_meta", descriptions of links, the status of a task, and members in places that the protocol
// does not define.
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

// eachElement calls look for each object of a list. It inspects all texts of an element that is not an object, and of a
// value that is not a list. A single object is treated as a list of one element.
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

// isNamed reports whether a member has the name, or a name that lenient parsers accept for it.
func isNamed(m rawjson.Member, name string) bool { return m.HasName(name) || m.ResemblesName(name) }

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

// inspectMessage inspects a message of a prompt, except the "text" members of its content blocks, which markResult
// inspects.
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

// inspectBlock inspects a content block and a resource in the block, except their "text" members, which markResult
// inspects.
func (f *marker) inspectBlock(block json.RawMessage) {
	for m := range rawjson.Members(block) {
		if isNamed(m, "resource") && isObject(m.Value) {
			f.inspectObject(m.Value)
		} else {
			f.inspectMember(m)
		}
	}
}

// inspectObject inspects an object, except its "text" members, which markResult inspects. Base64 data is decoded, and
// inspected if it is text.
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

// decodeTextBytes decodes a JSON string of Base64. It returns the decoded bytes if they are text, whatever media type
// the server declares. It returns "" for images, audio and other binary data.
func decodeTextBytes(value json.RawMessage) string {
	const enough = 2048 // characters that suffice to detect images and audio
	code, _ := rawjson.DecodeString(value)
	head := decodeBase64(code[:min(len(code), enough)])
	if wide := utf16Decoder(head); wide != nil {
		return wide(decodeBase64(code))
	}
	for range utf8.UTFMax - 1 { // remove an incomplete character at the end
		if len(code) > enough && len(head) > 0 && !utf8.Valid(head) {
			head = head[:len(head)-1]
		}
	}
	if !utf8.Valid(head) || bytes.IndexByte(head, 0) >= 0 {
		return ""
	}
	return strings.ToValidUTF8(string(decodeBase64(code)), "\ufffd")
}

// decodeBase64 decodes Base64 of the standard or URL alphabet, with or without padding, up to the first invalid
// character.
func decodeBase64(code string) []byte {
	code = strings.NewReplacer("=", "", "\n", "", "\r", "", " ", "", "\t", "", "-", "+", "_", "/").Replace(code)
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(code)))
	n, _ := base64.RawStdEncoding.Decode(out, []byte(code))
	return out[:n]
}

// utf16Decoder returns a decoder if head, the beginning of some bytes, is probably UTF-16. That is the case if head
// begins with a byte order mark, or if most of its 16-bit units have a zero high byte. For other bytes it returns nil.
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

// inspectTexts inspects each text of a value, at any depth, including member names.
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

// isProtocolWord reports whether a text is a constant of the protocol. Nearly all results contain such constants, so
// they are not inspected.
func isProtocolWord(text string) bool {
	switch text {
	case "type", "text", "image", "audio", "resource", "resource_link", "uri", "mimeType", "structuredContent",
		"isError", "_meta", "role", "user",
		"assistant", "annotations", "text/plain", "application/json", "resultType", "complete":
		return true
	}
	return false
}
