package deck

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxSummary is the most characters of a card's title or summary.
const maxSummary = 120

// BridgeCard presents a tool of a mounted server as a card, so that it shows in help beside the shipped ones: name is
// what it is listed and called by, definition the tool object as the server sent it. Its Run passes the call on under
// the tool's own name.
func BridgeCard(up Upstream, server drawbridge.ServerID, name drawbridge.CardName, definition json.RawMessage) drawbridge.Card {
	tool := wire.GetText(definition, "name")
	title := wire.GetText(definition, "title")
	if title == "" {
		title = wire.GetText(definition, "annotations", "title")
	}
	return bridged{up, drawbridge.Spec{
		Name: name, Server: server, Tool: tool,
		Definition: called(definition, "name", tool, string(name)),
		Title:      oneLine(title), Summary: oneLine(wire.GetText(definition, "description")),
		Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)},
	}}
}

type bridged struct {
	up   Upstream
	spec drawbridge.Spec
}

var _ drawbridge.Card = bridged{}

func (b bridged) Spec() drawbridge.Spec { return b.spec }

func (b bridged) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Params = wire.Apply(call.Params, wire.Put(wire.Quote(b.spec.Tool), "name"))
	return b.up.Do(ctx, b.spec.Server, call)
}

// called is the object with its member (its name or URI) changed from own to name; the object itself where they agree.
func called(object json.RawMessage, member, own, name string) json.RawMessage {
	if own == name {
		return object
	}
	return wire.Apply(object, wire.Put(wire.Quote(name), member))
}

// oneLine gives the first line of text, no longer than help can show.
func oneLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if short := []rune(line); len(short) > maxSummary {
		return string(short[:maxSummary-1]) + "…"
	}
	return line
}
