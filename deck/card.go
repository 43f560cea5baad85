package deck

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxSummary is the most characters of a card's title or summary.
const maxSummary = 120

// BridgeCard presents a tool of a mounted server as a card, so that it shows in help beside the shipped ones: name is
// what it is listed and called by, definition the tool object as the server sent it. Its Run passes the call on under
// the tool's own name.
func BridgeCard(up Upstream, server drawbridge.ServerID, name drawbridge.CardName, definition json.RawMessage) drawbridge.Card {
	return bridge(up, server, name, definition)
}

func bridge(up Upstream, server drawbridge.ServerID, name drawbridge.CardName, definition json.RawMessage) bridged {
	spec := drawbridge.Spec{Name: name, Server: server, Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)}}
	for m := range wire.Members(definition) {
		switch {
		case m.Is("name"):
			spec.Tool, _ = wire.Text(m.Value)
		case m.Is("title"):
			spec.Title = oneLine(m.Value)
		case m.Is("description"):
			spec.Summary = oneLine(m.Value)
		case m.Is("annotations") && spec.Title == "":
			spec.Title = oneLine(wire.Get(m.Value, "title"))
		case m.Is("_meta"):
			spec.AppOnly = label.AppOnly(m.Value)
		}
	}
	spec.Definition = called(definition, "name", spec.Tool, string(name))
	return bridged{up, spec}
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

// oneLine gives the first line of a JSON string, no longer than help can show. What a terminal would not print but obey
// is left out.
func oneLine(raw json.RawMessage) string {
	text, _ := wire.Text(raw)
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line)
	if len(line) <= maxSummary {
		return line
	}
	if short := []rune(line); len(short) > maxSummary {
		return string(short[:maxSummary-1]) + "…"
	}
	return line
}
