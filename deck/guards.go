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

// A Guard decides on calls. Every guard must allow a call; a guard that panics denies it.
type Guard interface {
	// Decide returns the verdict on a question. The zero verdict denies. It must not keep the question.
	Decide(ctx context.Context, q Question) drawbridge.Verdict
}

// A CountingGuard counts the calls that it allows. It decides last: after all other guards have allowed the call, and a
// person has approved it where one was asked. Its verdict is allow or deny.
type CountingGuard interface {
	Guard
	// Preview returns the verdict of Decide without counting, so that a person is not asked about a call that would be
	// refused afterwards.
	Preview(ctx context.Context, q Question) drawbridge.Verdict
}

// A HidingGuard knows in advance which items will never be allowed to a caller, so that they are hidden.
type HidingGuard interface {
	Guard
	// Hides reports whether an item is hidden from the caller. For the kind see [Question]. An empty kind means
	// everything of the spec's server.
	Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool
	// CallerClass returns a key for callers with the same hidden items. It holds until the deck is told of a change.
	CallerClass(caller drawbridge.Caller) string
	// HidesAnything reports whether it hides any item from any caller.
	HidesAnything() bool
}

// An OwnToolsGuard shows Drawbridge's own tools, see [Options].Tools, to callers other than the person at the command
// line and our own agent. Without such a guard no other caller sees any.
type OwnToolsGuard interface {
	HidingGuard
	// ShowsOwnTools reports whether the caller may see any of the tools. Hides decides on each.
	ShowsOwnTools(caller drawbridge.Caller) bool
}

// An ExplainingGuard explains why it hides an item: for the audit, never for the caller.
type ExplainingGuard interface {
	HidingGuard
	// HideReason returns the verdict behind the answer of Hides for the same arguments.
	HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict
}

// A Question is the input of a guard: may this caller send these params to this tool, prompt, resource or task?
type Question struct {
	Caller drawbridge.Caller
	// Kind is "tool", "prompt", "resource", "template" or "task"; empty if the target is unknown, as for a request of
	// an extension.
	Kind string
	// Spec is the target. A prompt has its name and definition. For a resource, Name and Tool are URIs. For a task,
	// Name is its public id and Tool the server's id; both are empty for a list of tasks.
	Spec drawbridge.Spec
	// Method is the MCP method and Params the params as the caller sent them. A counting guard that decides sees the
	// server's argument names.
	Method string
	Params json.RawMessage
}

// A guardChain holds the guards of a deck. It is safe for concurrent use.
type guardChain struct {
	guards   []Guard
	counters []CountingGuard
	hiders   []HidingGuard
	log      *slog.Logger
}

// newGuardChain returns a chain that asks guards in this order, and counting guards after all others.
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

// check asks whether a call may be made and returns the verdict that decided: the last one that names a rule, or else a
// plain allow.
//
// If no guard refuses the call, asked has the verdicts that want a person's approval; a refused call is never shown to
// a person. The error is a *drawbridge.Fault: NotFound for a hidden target, PolicyBlocked or the code of the verdict
// for a refusal.
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

// countCall asks the counting guards about a call that is about to be sent. The error is as for check, with the verdict
// that refused.
func (g *guardChain) countCall(ctx context.Context, q Question) (verdict drawbridge.Verdict, err error) {
	for _, c := range g.counters {
		if verdict := g.askGuard(ctx, c, &q); verdict.Effect != drawbridge.Allow {
			verdict, _, err = refuseByCounter(q, verdict)
			return verdict, err
		}
	}
	return drawbridge.Verdict{}, nil
}

// refuseByCounter turns the verdict of a counting guard into a refusal.
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

// A previewGuard decides by Preview, so that nothing is counted.
type previewGuard struct{ CountingGuard }

// Decide implements [Guard].
func (r previewGuard) Decide(ctx context.Context, q Question) drawbridge.Verdict {
	return r.Preview(ctx, q)
}

// askGuard asks one guard. A guard that panics returns the zero verdict.
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

// hidesAnything reports whether any item may be hidden from any caller.
func (g *guardChain) hidesAnything() bool {
	return slices.ContainsFunc(g.hiders, HidingGuard.HidesAnything)
}

// hides reports whether an item is hidden from the caller, see [HidingGuard]. A guard that panics hides it.
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

// hideReason returns why an item is hidden from a caller, for the audit: missing scopes, or a hiding guard. It is the
// zero verdict for a visible item.
func (g *guardChain) hideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (why drawbridge.Verdict) {
	if !caller.HasScopes(spec.Scopes) {
		why = drawbridge.Verdict{Rule: "scopes", Reason: fmt.Sprintf("the caller does not hold %v", spec.Scopes)}
	}
	defer func() {
		if p := recover(); p != nil {
			why = drawbridge.Verdict{Rule: "panic", Reason: "a guard panicked"}
		}
	}()
	for _, s := range g.hiders { // also if the answer is known already: an unknown name must take as long
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
	if caller.Kind == drawbridge.Author || caller.Kind == drawbridge.Agent {
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

// callerClass returns the caller's class for all hiding guards together.
func (g *guardChain) callerClass(caller drawbridge.Caller) string {
	var all strings.Builder
	for _, s := range g.hiders {
		fmt.Fprintf(&all, "%q ", s.CallerClass(caller))
	}
	return all.String()
}

// methodSubject returns a readable noun for the subject of a method.
func methodSubject(method string) string {
	word, _, _ := strings.Cut(method, "/")
	if word == "completion" {
		return "reference"
	}
	return strings.TrimSuffix(word, "s")
}

// unknownNameFault returns the one fault for names that do not exist and for names that are hidden from the caller.
func unknownNameFault(word, name string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("unknown %s %s", word, clipText(name)),
	}
}

// clipText truncates a caller's text so that an error may repeat it.
func clipText(text string) string { return safetext.Truncate(text, 200, safetext.Bytes, "…") }
