package deck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Guard decides whether a call is allowed. A deck sends a call only if all its guards allow the call, or a person
// approves it where guards require that. If a guard panics, the call is refused.
type Guard interface {
	// Decide returns the verdict on the call that q describes. The zero verdict refuses the call. Decide must not
	// retain q after it returns.
	Decide(ctx context.Context, q Question) drawbridge.Verdict
}

// A CountingGuard counts the calls that it allows, for example for a quota. It is asked last, when all other guards
// have allowed the call and any required approval was granted. Its verdict is Allow or Deny.
type CountingGuard interface {
	Guard
	// Preview returns the same verdict as Decide, but does not count the call. It is called before a person is asked
	// for an approval, so that the person does not approve a call that Decide then refuses.
	Preview(ctx context.Context, q Question) drawbridge.Verdict
}

// A HidingGuard also decides, without the arguments of a call, which items a caller may never call. Lists do not
// contain these items, and calls of them fail as if the items did not exist.
type HidingGuard interface {
	Guard
	// Hides reports whether the item that kind and spec describe is hidden from the caller. The values of kind are
	// those of [Question].Kind. If kind is empty, Hides reports whether all items of the server in spec are hidden.
	Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool
	// CallerClass returns a key for the caller. From callers with the same key, the same items are hidden, so lists are
	// cached by this key. The deck uses the key until [Deck.Refresh] is called.
	CallerClass(caller drawbridge.Caller) string
	// HidesAnything reports whether the guard hides any item from any caller.
	HidesAnything() bool
}

// An OwnToolsGuard makes Drawbridge's own tools in [Options].Tools visible to some external callers. Without such a
// guard, these tools are visible only to the person at the command line and to Drawbridge's own agent.
type OwnToolsGuard interface {
	HidingGuard
	// ShowsOwnTools reports whether at least one of these tools is visible to the caller. Hides decides which of them
	// are.
	ShowsOwnTools(caller drawbridge.Caller) bool
}

// An ExplainingGuard can explain why it hides an item. The explanation is for the audit and is never sent to the
// caller.
type ExplainingGuard interface {
	HidingGuard
	// HideReason returns a verdict that denies the item with a reason, if Hides returns true for the same arguments.
	// Otherwise the verdict does not deny the item.
	HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict
}

// A Question describes a call on which a guard decides: the caller, the method, the params, and the target of the call.
type Question struct {
	Caller drawbridge.Caller
	// Kind is the kind of the target: "tool", "prompt", "resource", "template" or "task". It is empty if the call has
	// no such target, for example a request for a server's list of skills.
	Kind string
	// Spec describes the target. For a tool or a prompt, it has the name and the definition. For a resource, Name is
	// the public URI and Tool is the server's own URI. For a task, Name is the public ID and Tool is the server's own
	// ID; both are empty for a list of tasks.
	Spec drawbridge.Spec
	// Method is the MCP method. Params are the params as the caller sent them, except for a CountingGuard's Decide:
	// there the names of arguments are the server's own names.
	Method string
	Params json.RawMessage
}

// A guardChain contains the guards of a deck, in the order in which they are asked. It is safe for concurrent use.
type guardChain struct {
	guards   []Guard
	counters []CountingGuard
	hiders   []HidingGuard
	// observers follow the data of calls.
	observers []CallObserver
	labellers []LabellingGuard
	log       *slog.Logger
}

// newGuardChain returns a chain that asks the guards in this order, but asks counting guards after all other guards.
func newGuardChain(guards []Guard, log *slog.Logger) *guardChain {
	g := &guardChain{log: log}
	for _, guard := range guards {
		if c, ok := guard.(CountingGuard); ok {
			g.counters = append(g.counters, c)
		} else {
			g.guards = append(g.guards, guard)
		}
		if s, ok := guard.(HidingGuard); ok {
			g.hiders = append(g.hiders, s)
		}
		if o, ok := guard.(CallObserver); ok {
			g.observers = append(g.observers, o)
		}
		if l, ok := guard.(LabellingGuard); ok {
			g.labellers = append(g.labellers, l)
		}
	}
	return g
}

// check asks the guards, except the counting guards, whether a call is allowed. If all of them allow it, last is the
// last verdict that names a rule, or a plain allow if no verdict names a rule.
//
// If the call needs an approval, asked has the verdicts that require it, and last is the first of them. Counting guards
// are then asked for a preview. If a guard refuses the call, last is its verdict, asked is empty, and err is a
// *drawbridge.Fault. The code of the fault is NotFound for a hidden target, and otherwise the code of the verdict, or
// PolicyBlocked.
func (g *guardChain) check(ctx context.Context, q Question) (last drawbridge.Verdict,
	asked []drawbridge.Verdict, err error) {
	last = drawbridge.Verdict{Effect: drawbridge.Allow}
	for _, guard := range g.guards {
		verdict := g.askGuard(ctx, guard, &q)
		switch {
		case verdict.Effect == drawbridge.Allow:
			if verdict.Rule != "" || last.Rule == "" {
				last = verdict
			}
			continue
		case verdict.Hide:
			return verdict, nil, unknownNameFault(methodSubject(q.Method), string(q.Spec.Name))
		case verdict.Effect == drawbridge.Ask:
			asked = append(asked, verdict)
			continue
		case verdict.Reason == "":
			verdict.Reason = "it is not allowed"
		}
		return verdict, nil, refusalFault(q.Method, q.Spec, verdict, errors.New(verdict.Reason))
	}
	if len(asked) == 0 {
		return last, nil, nil
	}
	for _, c := range g.counters {
		if verdict := g.askGuard(ctx, previewGuard{c}, &q); verdict.Effect != drawbridge.Allow {
			return refuseByCounter(q, verdict)
		}
	}
	return asked[0], asked, nil
}

// countCall asks the counting guards to count a call that is about to be sent. If a guard refuses the call, countCall
// returns its verdict and a fault as in check. Otherwise it returns the zero verdict and nil.
func (g *guardChain) countCall(ctx context.Context, q Question) (verdict drawbridge.Verdict, err error) {
	for _, c := range g.counters {
		if verdict := g.askGuard(ctx, c, &q); verdict.Effect != drawbridge.Allow {
			verdict, _, err = refuseByCounter(q, verdict)
			return verdict, err
		}
	}
	return drawbridge.Verdict{}, nil
}

// refuseByCounter returns the results of check for a call that a counting guard refused with this verdict.
func refuseByCounter(q Question, verdict drawbridge.Verdict) (drawbridge.Verdict, []drawbridge.Verdict, error) {
	verdict.Effect, verdict.Reason = drawbridge.Deny, cmp.Or(verdict.Reason, "it is not allowed")
	return verdict, nil, refusalFault(q.Method, q.Spec, verdict, errors.New(verdict.Reason))
}

// refusalFault returns the fault for a call that a guard or a person refused.
func refusalFault(method string, spec drawbridge.Spec, verdict drawbridge.Verdict, why error) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: cmp.Or(verdict.Code, drawbridge.PolicyBlocked),
		Step: fmt.Sprintf("%s %s", method, clipText(string(spec.Name))), Err: why, Next: verdict.Next,
	}
}

// A previewGuard is a guard whose Decide method calls the Preview method of a counting guard, so that the call is not
// counted.
type previewGuard struct{ CountingGuard }

// Decide implements [Guard].
func (r previewGuard) Decide(ctx context.Context, q Question) drawbridge.Verdict {
	return r.Preview(ctx, q)
}

// askGuard asks one guard. If the guard panics, it logs the panic and returns the zero verdict.
func (g *guardChain) askGuard(ctx context.Context, guard Guard, q *Question) (verdict drawbridge.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a guard panicked, the call is refused", "card", q.Spec.Name, "panic", panicMessage(p), "at",
				panicLocation())
			verdict = drawbridge.Verdict{}
		}
	}()
	return guard.Decide(ctx, *q)
}

// hidesAnything reports whether any guard hides an item from any caller.
func (g *guardChain) hidesAnything() bool {
	return slices.ContainsFunc(g.hiders, HidingGuard.HidesAnything)
}

// hides reports whether any guard hides the item from the caller; see [HidingGuard]. If a guard panics, the item is
// hidden.
func (g *guardChain) hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (hidden bool) {
	if len(g.hiders) == 0 {
		return false
	}
	caller = withoutProof(caller)
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a guard panicked, the card is hidden", "card", spec.Name, "panic", panicMessage(p), "at",
				panicLocation())
			hidden = true
		}
	}()
	for _, s := range g.hiders {
		if s.Hides(caller, kind, spec) {
			return true
		}
	}
	return false
}

// hideReason returns a verdict that explains, for the audit, why an item is hidden from a caller. The reason is that
// the caller lacks scopes, or that a guard hides the item. For a visible item, hideReason returns the zero verdict.
func (g *guardChain) hideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (why drawbridge.Verdict) {
	if !caller.HasScopes(spec.Scopes) {
		why = drawbridge.Verdict{Rule: "scopes", Reason: fmt.Sprintf("the caller does not hold %v", spec.Scopes)}
	}
	defer func() {
		if p := recover(); p != nil {
			why = drawbridge.Verdict{Rule: "panic", Reason: "a guard panicked"}
		}
	}()
	caller = withoutProof(caller)
	for _, s := range g.hiders { // always ask all guards, so that an unknown name takes the same time
		verdict := drawbridge.Verdict{Effect: drawbridge.Allow}
		if t, ok := s.(ExplainingGuard); ok {
			verdict = t.HideReason(caller, kind, spec)
		} else if s.Hides(caller, kind, spec) {
			verdict = drawbridge.Verdict{Rule: "hidden"}
		}
		if verdict.Effect == drawbridge.Deny && why == (drawbridge.Verdict{}) {
			why = verdict
		}
	}
	return why
}

// showsOwnTools reports whether the caller may see Drawbridge's own tools.
func (g *guardChain) showsOwnTools(caller drawbridge.Caller) (shown bool) {
	if kind := caller.OriginKind(); kind == drawbridge.Author || kind == drawbridge.Agent {
		return true
	}
	defer func() {
		if p := recover(); p != nil {
			shown = false
		}
	}()
	return slices.ContainsFunc(g.hiders, func(h HidingGuard) bool {
		guard, ok := h.(OwnToolsGuard)
		return ok && guard.HidesAnything() && guard.ShowsOwnTools(caller)
	})
}

// callerClass returns a key for the caller that combines the keys of all hiding guards; see [HidingGuard]. From callers
// with the same key, the same items are hidden.
func (g *guardChain) callerClass(caller drawbridge.Caller) string {
	var all strings.Builder
	for _, s := range g.hiders {
		fmt.Fprintf(&all, "%q ", s.CallerClass(caller))
	}
	return all.String()
}

// methodSubject returns a noun for the target of a method, such as "tool" for "tools/call".
func methodSubject(method string) string {
	word, _, _ := strings.Cut(method, "/")
	if word == "completion" {
		return "reference"
	}
	return strings.TrimSuffix(word, "s")
}

// unknownNameFault returns the fault for a name that does not exist, or that is hidden from the caller. Both get the
// same fault, so that a caller cannot find out which names are hidden.
func unknownNameFault(word, name string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("unknown %s %s", word, clipText(name)),
	}
}

// clipText truncates a text from a caller to 200 bytes, so that it can be part of an error.
func clipText(text string) string { return safetext.Truncate(text, 200, safetext.Bytes, "…") }
