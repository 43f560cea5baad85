package talk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A server of the stateful generation may refuse a call with the error -32042, whose data names pages that the user must
// visit first (2025-11-25, Elicitation, URL mode). The stateless generation has that error no more: there the call asks for
// input.

// MetaServer is the member of an elicitation's _meta that says which server asks: a form that a person is to fill in must
// not look as if Drawbridge asked.
const MetaServer = "drawbridge/server"

// Named gives a question of a server as the rules let it be shown. An elicitation says which server it comes from, and what in
// it to look at: see MetaSensitive. What is neither an elicitation nor a sampling stays as it is.
func (r Rules) Named(id drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage {
	if wire.Get(params, "_meta") != nil { // what a server says in our name
		params = wire.Apply(params, wire.Drop("_meta", MetaSensitive), wire.Drop("_meta", MetaOrigin), wire.Drop("_meta", wire.MetaFlagged))
	}
	switch {
	case method == wire.MethodElicitation:
		return r.marked(id, wire.Apply(params, wire.Put(wire.Quote(string(id)), "_meta", MetaServer)))
	case method == wire.MethodSampling && r.Look != nil:
		return r.Look(id, method, params)
	}
	return params
}

// demandedBy gives the elicitations that an error demands, of too many just one more than there may be; none for any other
// error.
func demandedBy(err error) (demands []json.RawMessage) {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Raw == nil || wire.ErrorCode(f.Raw) != wire.CodeURLElicitation {
		return nil
	}
	for params := range wire.Elements(wire.Get(f.Raw, "data", "elicitations")) {
		if params[0] == '{' {
			demands = append(demands, params)
		}
		if len(demands) > mostDemands {
			break
		}
	}
	return demands
}

// InWords gives the outcome of a stateless caller's call in words that its generation has: an error that demands
// elicitations says which capabilities that takes.
func InWords(result drawbridge.Result, err error) (drawbridge.Result, error) {
	demands := demandedBy(err)
	if len(demands) == 0 {
		return result, err
	}
	// Pages are all that the error may demand; a server that demands more is told what that would take.
	var url, form json.RawMessage
	for _, params := range demands {
		if wire.GetText(params, "mode") == "url" {
			url = json.RawMessage("{}")
		} else {
			form = json.RawMessage("{}")
		}
	}
	required := wire.Apply(nil, wire.Put(json.RawMessage("{}"), "requiredCapabilities", "elicitation"),
		wire.Put(url, "requiredCapabilities", "elicitation", "url"), wire.Put(form, "requiredCapabilities", "elicitation", "form"))
	f := *drawbridge.AsFault(err)
	f.Raw = wire.ErrorObject(wire.CodeMissingCapability, "the user must be asked first, which takes elicitation that the client did not declare", required)
	return result, &f
}

// mostDemands is how many elicitations one error may demand.
const mostDemands = 16

// run carries the call, again each time that the user has done what an error demanded.
func (t *talk) run(call drawbridge.Call) (drawbridge.Result, error) {
	for range mostRounds {
		result, err := t.line.Carry(t.ctx, call)
		demands := demandedBy(err)
		switch {
		case len(demands) > mostDemands:
			return drawbridge.Result{}, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: t.line.Step,
				Err: fmt.Errorf("the server demands more than %d elicitations at once", mostDemands),
			}
		case len(demands) == 0 || !t.coversAll(demands):
			return InWords(result, err)
		}
		for _, params := range demands {
			switch refusal := t.visit(params); {
			case errors.Is(refusal, errUndeclared): // by a request that has come since
				return InWords(result, err)
			case refusal != nil:
				return drawbridge.Result{}, refusal
			}
		}
	}
	return drawbridge.Result{}, &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: t.line.Step,
		Err: errors.New("the server demands elicitations again and again"),
	}
}

// coversAll says whether the last request declared that its user can be put all these elicitations.
func (t *talk) coversAll(demands []json.RawMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(demands, func(params json.RawMessage) bool {
		return strayPage(params) || !t.covers(wire.MethodElicitation, params)
	})
}

// visit has the caller take the user to a page.
func (t *talk) visit(params json.RawMessage) error {
	answer, err := t.Ask(t.ctx, wire.MethodElicitation, t.line.Rules.Named(t.line.Server, wire.MethodElicitation, params))
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
