package offer

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Sender sends a call to a server and gives its result object as the server sent it. An error is a *drawbridge.Fault.
type Sender interface {
	Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)
}

// Bridged is a tool of a mounted server as a card. Its Run passes the call on under the tool's own name.
type Bridged struct {
	Up Sender
	Is drawbridge.Spec
}

var _ drawbridge.Card = Bridged{}

// Spec gives what the card is.
func (b Bridged) Spec() drawbridge.Spec { return b.Is }

// Run passes a call on.
func (b Bridged) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	call.Params = wire.Apply(call.Params, wire.Put(wire.Quote(b.Is.Tool), "name"))
	return b.Up.Do(ctx, b.Is.Server, call)
}

// Bridge makes a card of a tool: name is what it is listed and called by, definition the tool object as the server sent it.
func Bridge(up Sender, server drawbridge.ServerID, name drawbridge.CardName, definition json.RawMessage) Bridged {
	spec := drawbridge.Spec{Name: name, Server: server, Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)}}
	for m := range wire.Members(definition) {
		switch {
		case m.Is("name"):
			spec.Tool, _ = wire.Text(m.Value)
		case m.Is("title"):
			spec.Title = OneLine(m.Value)
		case m.Is("description"):
			spec.Summary = OneLine(m.Value)
		case m.Is("annotations") && spec.Title == "":
			spec.Title = OneLine(wire.Get(m.Value, "title"))
		case m.Is("_meta"):
			spec.AppOnly = AppOnly(m.Value)
		}
	}
	spec.Definition = Called(definition, "name", spec.Tool, string(name))
	return Bridged{up, spec}
}

// Called is the object with its member (its name or URI) changed from own to name; the object itself where they agree.
func Called(object json.RawMessage, member, own, name string) json.RawMessage {
	if own == name {
		return object
	}
	return wire.Apply(object, wire.Put(wire.Quote(name), member))
}
