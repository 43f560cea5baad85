package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// CheckRules returns warnings about probable mistakes in the rules, one line each. The error is a *drawbridge.Fault
// with the code InvalidInput for invalid rules.
func CheckRules(rules *drawbridge.Rules) (warnings []string, err error) {
	p, err := guards.CompileRules(rules)
	if p == nil || err != nil {
		return nil, err
	}
	return p.Warnings(), nil
}

// An Explanation is the verdict of the rules on a call, with the steps that led to it. It is for the people who write
// the rules.
type Explanation struct {
	Kind   string              `json:"kind"`
	Name   drawbridge.CardName `json:"name"`
	Server drawbridge.ServerID `json:"server,omitempty"`
	Caller string              `json:"caller"`
	Effect string              `json:"effect"`
	// Hidden reports whether the name is hidden from the caller, as if it did not exist.
	Hidden bool `json:"hidden"`
	// Rule is the number of the rule that decided, counted from 1; 0 means that the default effect decided.
	Rule  int                `json:"rule"`
	At    string             `json:"at,omitempty"`
	Why   string             `json:"why"`
	Steps []policy.TraceStep `json:"steps"`
	// Flow is the verdict of the guard of information flow; nil if the run of the caller has read only what is trusted.
	Flow *guards.FlowExplanation `json:"flow,omitempty"`
}

// Explain returns the verdict of the rules on a call that caller would make. name is a listed name or a URI; nil
// arguments mean a call without arguments. It does not call any tool. The error is a *drawbridge.Fault with the code
// NotFound for an unknown name, or InvalidInput if the arguments are not a JSON object.
func (g *Gateway) Explain(caller drawbridge.Caller, name string, arguments json.RawMessage) (Explanation, error) {
	kind, spec, ok := g.deck.FindUnfiltered(name)
	if !ok {
		return Explanation{}, &drawbridge.Fault{
			Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "explain " + name,
			Err: errors.New("nothing is listed by that name"), Next: "drawbridge tools list",
		}
	}
	params := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(name), "name"))
	if arguments != nil {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(arguments, &object); err != nil || object == nil {
			return Explanation{}, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: "explain " + name,
				Err: errors.New("arguments must be a JSON object"),
			}
		}
		params = rawjson.Apply(params, rawjson.Put(arguments, "arguments"))
	}
	q := deck.Question{Caller: caller, Kind: kind, Spec: spec, Method: policy.MethodOf(kind), Params: params}
	d, steps := g.ruleGuard.Explain(q)
	return Explanation{
		Kind: kind, Name: spec.Name, Server: spec.Server, Caller: caller.Principal, Effect: d.Effect.String(),
		Hidden: d.Hidden,
		Rule:   d.Rule, At: d.At, Why: d.Why, Steps: steps, Flow: g.flow.Explain(q),
	}, nil
}

// ExplainInSession is like Explain, for a caller whose session another process holds or held. typed are the texts that
// the person typed in the session: their values are trusted.
func (g *Gateway) ExplainInSession(ctx context.Context, caller drawbridge.Caller, typed []string, name string,
	arguments json.RawMessage) (Explanation, error) {
	for _, text := range typed {
		if err := g.flow.Typed(ctx, caller, text); err != nil {
			return Explanation{}, storeFault("read the label of the run", err)
		}
	}
	return g.Explain(caller, name, arguments)
}
