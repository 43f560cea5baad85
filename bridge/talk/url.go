package talk

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A server of the stateful generation may refuse a call with the error -32042, whose data names pages that the user must
// visit first (2025-11-25, Elicitation, URL mode). The stateless generation has that error no more: there the call asks for
// input.

// MetaServer is the member of an elicitation's _meta that says which server asks: a form that a person is to fill in must
// not look as if Drawbridge asked.
const MetaServer = "drawbridge/server"

// Named says in an elicitation which server it comes from. Other requests stay as they are.
func Named(id drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage {
	if method != wire.MethodElicitation {
		return params
	}
	return wire.Apply(params, wire.Put(wire.Quote(string(id)), "_meta", MetaServer))
}

// demandedBy gives the elicitations that an error demands; none for any other error.
func demandedBy(err error) (demands []json.RawMessage) {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Raw == nil || wire.ErrorCode(f.Raw) != wire.CodeURLElicitation {
		return nil
	}
	for params := range wire.Elements(wire.Get(f.Raw, "data", "elicitations")) {
		if params[0] == '{' {
			demands = append(demands, params)
		}
	}
	return demands
}

// InWords gives the outcome of a stateless caller's call in words that its generation has: an error that demands
// elicitations says which capability is missing.
func InWords(result drawbridge.Result, err error) (drawbridge.Result, error) {
	if len(demandedBy(err)) == 0 {
		return result, err
	}
	f := *drawbridge.AsFault(err)
	const data = `{"requiredCapabilities":{"elicitation":{"url":{}}}}`
	f.Raw = wire.ErrorObject(wire.CodeMissingCapability, "the user must visit a page first, which takes elicitation by URL", json.RawMessage(data))
	return result, &f
}

// run carries the call, again each time that the user has done what an error demanded.
func (t *talk) run(call drawbridge.Call) (drawbridge.Result, error) {
	for range mostRounds {
		result, err := t.line.Carry(t.ctx, call)
		demands := demandedBy(err)
		if len(demands) == 0 || !wire.MayAsk(call.Caller.Capabilities, wire.MethodElicitation, demands[0]) {
			return InWords(result, err)
		}
		for _, params := range demands {
			if err := t.visit(params); err != nil {
				return drawbridge.Result{}, err
			}
		}
	}
	return drawbridge.Result{}, &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: t.line.Step,
		Err: errors.New("the server demands elicitations again and again"),
	}
}

// visit has the caller take the user to a page.
func (t *talk) visit(params json.RawMessage) error {
	answer, err := t.Ask(t.ctx, wire.MethodElicitation, Named(t.line.Server, wire.MethodElicitation, params))
	switch {
	case errors.Is(err, context.Canceled):
		return t.line.unfinished(err)
	case err != nil:
		return err
	case wire.GetText(answer, "action") != "accept":
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: t.line.Step,
			Err: errors.New("the user did not visit the page that the server demands"),
		}
	}
	return nil
}
