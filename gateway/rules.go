package gateway

import (
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// CheckRules gives what of rules is probably not meant, a line each. The error is a *drawbridge.Fault InvalidInput for
// rules that no gateway takes.
func CheckRules(rules *drawbridge.Rules) (warnings []string, err error) {
	p, err := guards.CompileRules(rules)
	if p == nil || err != nil {
		return nil, err
	}
	return p.Warnings(), nil
}

// An Explanation says what the rules make of a call, for those who keep them.
type Explanation struct {
	Kind   string              `json:"kind"`
	Name   drawbridge.CardName `json:"name"`
	Server drawbridge.ServerID `json:"server,omitempty"`
	Caller string              `json:"caller"`
	Effect string              `json:"effect"`
	// Hidden says that to the caller it does not exist.
	Hidden bool `json:"hidden"`
	// Rule is the rule that decided, counted from 1; 0 is the default effect.
	Rule  int                `json:"rule"`
	At    string             `json:"at,omitempty"`
	Why   string             `json:"why"`
	Steps []policy.TraceStep `json:"steps"`
}

// Explain says what the rules make of a caller's use of what is listed by a name or URI, with these arguments; nil are
// none. Nothing is called. The error is a *drawbridge.Fault NotFound for a name that nobody has, and InvalidInput for
// arguments that are no JSON object.
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
				Err: errors.New("the arguments are no JSON object"),
			}
		}
		params = rawjson.Apply(params, rawjson.Put(arguments, "arguments"))
	}
	q := deck.Question{Caller: caller, Kind: kind, Spec: spec, Method: policy.MethodOf(kind), Params: params}
	d, steps := g.ruleGuard.Explain(q)
	return Explanation{
		Kind: kind, Name: spec.Name, Server: spec.Server, Caller: caller.Principal, Effect: d.Effect.String(),
		Hidden: d.Hidden,
		Rule:   d.Rule, At: d.At, Why: d.Why, Steps: steps,
	}, nil
}
