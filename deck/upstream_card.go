package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A callSender sends a call to a server and gives its result object as the server sent it. An error is a
// *drawbridge.Fault.
type callSender interface {
	Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)
}

// upstreamCard is a tool of a mounted server as a card. Its Run passes the call on under the tool's own name.
type upstreamCard struct {
	upstream callSender
	spec     drawbridge.Spec
}

var _ drawbridge.Card = upstreamCard{}

// Spec gives what the card is.
func (b upstreamCard) Spec() drawbridge.Spec { return b.spec }

// Run passes a call on.
func (b upstreamCard) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Params = rawjson.Apply(call.Params, rawjson.Put(rawjson.Quote(b.spec.Tool), "name"))
	return b.upstream.Do(ctx, b.spec.Server, call)
}

// newUpstreamCard makes a card of a tool: name is what it is listed and called by, definition the tool object as the
// server sent it.
func newUpstreamCard(up callSender, server drawbridge.ServerID, name drawbridge.CardName,
	definition json.RawMessage) upstreamCard {
	spec := drawbridge.Spec{Name: name, Server: server, Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)}}
	for m := range rawjson.Members(definition) {
		switch {
		case m.HasName("name"):
			spec.Tool, _ = rawjson.DecodeString(m.Value)
		case m.HasName("title"):
			spec.Title = oneLine(m.Value)
		case m.HasName("description"):
			spec.Summary = oneLine(m.Value)
		case m.HasName("annotations") && spec.Title == "":
			spec.Title = oneLine(rawjson.Get(m.Value, "title"))
		case m.HasName("_meta"):
			spec.AppOnly = isAppOnly(m.Value)
		}
	}
	spec.Definition = replaceName(definition, "name", spec.Tool, string(name))
	return upstreamCard{up, spec}
}

// replaceName is the object with its member (its name or URI) changed from own to name; the object itself where they
// agree.
func replaceName(object json.RawMessage, member, own, name string) json.RawMessage {
	if own == name {
		return object
	}
	return rawjson.Apply(object, rawjson.Put(rawjson.Quote(name), member))
}
