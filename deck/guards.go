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

// A Guard decides whether a call is allowed. Every guard of a deck must allow a call. If a guard panics, the call is
// refused.
type Guard interface {
	// Decide returns the verdict on a question. The zero verdict refuses the call. Decide must not store the question.
	Decide(ctx context.Context, q Question) drawbridge.Verdict
}

// A CountingGuard counts the calls that it allows. It is asked last, after all other guards have allowed the call and a
// person has approved it if required. Its verdict is Allow or Deny.
type CountingGuard interface {
	Guard
	// Preview returns the same verdict as Decide, but does not count the call. It is called before a person is asked, so
	// that a person does not approve a call that is refused afterwards.
	Preview(ctx context.Context, q Question) drawbridge.Verdict
}

// A HidingGuard also hides items that a caller is never allowed to call.
type HidingGuard interface {
	Guard
	// Hides reports whether an item is hidden from the caller. The kinds are those of [Question]. An empty kind means
	// everything of the server in spec.
	Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool
	// CallerClass returns a key that is the same for callers with the same hidden items. It is valid until [Deck.Refresh].
	CallerClass(caller drawbridge.Caller) string
	// HidesAnything reports whether the guard hides any item from any caller.
	HidesAnything() bool
}

// An OwnToolsGuard makes Drawbridge's own tools visible to more callers; see [Options].Tools. Without such a guard,
// only the person at the command line and Drawbridge's own agent see these tools.
type OwnToolsGuard interface {
	HidingGuard
	// ShowsOwnTools reports whether the caller may see any of the tools. Hides decides on each tool.
	ShowsOwnTools(caller drawbridge.Caller) bool
}

// An ExplainingGuard can explain why it hides an item. The explanation is for the audit and is never sent to the
// caller.
type ExplainingGuard interface {
	HidingGuard
	// HideReason returns the verdict that explains the result of Hides for the same arguments.
	HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict
}

// A Question is the input of a guard: may this caller send these params to this tool, prompt, resource or task?
type Question struct {
	Caller drawbridge.Caller
	// Kind is "tool", "prompt", "resource", "template" or "task". It is empty if the target is unknown, for example in a
	// request of an extension.
	Kind string
	// Spec is the target. For a prompt, it has the prompt's name and definition. For a resource, Name and Tool are URIs.
	// For a task, Name is the public ID and Tool is the server's ID; both are empty for a list of tasks.
	Spec drawbridge.Spec
	// Method is the MCP method. Params are the params as the caller sent them. In CountingGuard.Decide, the names of
	// arguments are the server's names.
	Method string
	Params json.RawMessage
}

// A guardChain is the ordered list of guards of a deck. It is safe for concurrent use.
type guardChain struct {
	guards   []Guard
	counters []CountingGuard
	hiders   []HidingGuard
	log      *slog.Logger
}

// newGuardChain returns a chain that asks guards in this order, but counting guards after all others.
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
	}
	return g
}

// check asks the guards whether a call is allowed, and returns the deciding verdict. That is the last verdict that
// names a rule, or a plain allow if no verdict does.
//
// If the call needs an approval, asked has the verdicts that require it, and last is the first of them. If a guard
// refuses the call, asked is empty, so that a person is not asked. The error is a *drawbridge.Fault. Its code is
// NotFound for a hidden target. For a refusal it is the code of the verdict, or PolicyBlocked.
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

// countCall asks the counting guards about a call that will be sent. If a guard refuses the call, it returns that
// verdict and the same error as check.
func (g *guardChain) countCall(ctx context.Context, q Question) (verdict drawbridge.Verdict, err error) {
	for _, c := range g.counters {
		if verdict := g.askGuard(ctx, c, &q); verdict.Effect != drawbridge.Allow {
			verdict, _, err = refuseByCounter(q, verdict)
			return verdict, err
		}
	}
	return drawbridge.Verdict{}, nil
}

// refuseByCounter converts the verdict of a counting guard into a refusal.
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

// A previewGuard is a guard that calls Preview, so that the call is not counted.
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

// hides reports whether an item is hidden from the caller; see [HidingGuard]. If a guard panics, the item is hidden.
func (g *guardChain) hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (hidden bool) {
	if len(g.hiders) == 0 {
		return false
	}
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

// hideReason returns, for the audit, why an item is hidden from a caller: missing scopes or a hiding guard. For a
// visible item it returns the zero verdict.
func (g *guardChain) hideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (why drawbridge.Verdict) {
	if !caller.HasScopes(spec.Scopes) {
		why = drawbridge.Verdict{Rule: "scopes", Reason: fmt.Sprintf("the caller does not hold %v", spec.Scopes)}
	}
	defer func() {
		if p := recover(); p != nil {
			why = drawbridge.Verdict{Rule: "panic", Reason: "a guard panicked"}
		}
	}()
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

// callerClass returns a key for the caller that combines the classes of all hiding guards.
func (g *guardChain) callerClass(caller drawbridge.Caller) string {
	var all strings.Builder
	for _, s := range g.hiders {
		fmt.Fprintf(&all, "%q ", s.CallerClass(caller))
	}
	return all.String()
}

// methodSubject returns a noun for the items of a method, such as "tool" for "tools/call".
func methodSubject(method string) string {
	word, _, _ := strings.Cut(method, "/")
	if word == "completion" {
		return "reference"
	}
	return strings.TrimSuffix(word, "s")
}

// unknownNameFault returns the fault for a name that does not exist. The fault for a name that is hidden from the
// caller is the same.
func unknownNameFault(word, name string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("unknown %s %s", word, clipText(name)),
	}
}

// clipText truncates a text from a caller, so that it can be part of an error.
func clipText(text string) string { return safetext.Truncate(text, 200, safetext.Bytes, "…") }
