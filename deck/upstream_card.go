package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A callSender sends a call to a server and returns the result object as the server sent it. An error is a
// *drawbridge.Fault.
type callSender interface {
	Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)
}

// An upstreamCard is the card of a server's tool; its Run method sends the call to the server.
type upstreamCard struct {
	upstream callSender
	spec     drawbridge.Spec
	// hasOutputSchema reports whether the tool's definition has an output schema.
	hasOutputSchema bool
}

var _ drawbridge.Card = upstreamCard{}

// Spec returns the tool's spec.
func (b upstreamCard) Spec() drawbridge.Spec { return b.spec }

// Run sends the call with the server's own name of the tool.
func (b upstreamCard) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Params = rawjson.Apply(call.Params, rawjson.Put(rawjson.Quote(b.spec.Tool), "name"))
	return b.upstream.Do(ctx, b.spec.Server, call)
}

// newUpstreamCard returns the card of a server's tool. name is the public name. definition is the tool object with the
// server's own name.
func newUpstreamCard(up callSender, server drawbridge.ServerID, name drawbridge.CardName,
	definition json.RawMessage) upstreamCard {
	spec := drawbridge.Spec{Name: name, Server: server, Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)}}
	card := upstreamCard{upstream: up}
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
		case m.HasName("outputSchema"):
			card.hasOutputSchema = string(m.Value) != "null"
		case m.HasName("_meta"):
			spec.AppOnly, spec.HasPage = isAppOnly(m.Value), len(pageURIsOf(definition)) > 0
		}
	}
	spec.Definition = replaceName(definition, "name", spec.Tool, string(name))
	card.spec = spec
	return card
}

// replaceName returns the object with the value of its member set to name. own is the present value; if it equals name,
// the object is returned unchanged.
func replaceName(object json.RawMessage, member, own, name string) json.RawMessage {
	if own == name {
		return object
	}
	return rawjson.Apply(object, rawjson.Put(rawjson.Quote(name), member))
}
