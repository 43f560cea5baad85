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

// A Guard decides on calls. Every guard must allow a call; a guard that panics denies.
type Guard interface {
	// Decide answers a question. The zero verdict denies. It must not keep the question.
	Decide(ctx context.Context, q Question) drawbridge.Verdict
}

// A CountingGuard is a guard that counts the calls which it allows. It decides last: where no other guard refuses a
// call, and a person, if one was to be asked, has allowed it. What it says is allow, or else a no.
type CountingGuard interface {
	Guard
	// Preview says what Decide would, and counts nothing: a person is not asked about what would be refused after it.
	Preview(ctx context.Context, q Question) drawbridge.Verdict
}

// A HidingGuard is a guard that knows beforehand what no call of a caller will ever be allowed to: that is hidden from
// them.
type HidingGuard interface {
	Guard
	// Hides says whether something is hidden from the caller: what kind it is, see Question, and what is known of it.
	// With no kind, the spec has a server only, all of which is meant.
	Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool
	// CallerClass says in a word what the caller is to the screen: from callers of one class the same is hidden, as
	// long as the deck is not told that something changed.
	CallerClass(caller drawbridge.Caller) string
	// HidesAnything says whether it hides anything at all from anybody.
	HidesAnything() bool
}

// A ExplainingGuard is a screen that says why it hides something: for the record, and never for who is not to know.
type ExplainingGuard interface {
	HidingGuard
	// HideReason gives the verdict by which Hides says what it does of the same.
	HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict
}

// A Question is what a guard decides on: may this caller send these params to this card, or to one of its siblings?
type Question struct {
	Caller drawbridge.Caller
	// Kind is "tool", "prompt", "resource", "template" or "task"; empty where it is not known what is meant, as for a
	// request of an extension.
	Kind string
	// Spec is the card. For a prompt it has the prompt's name and definition; for a resource Name and Tool are URIs;
	// for a task Name is its id as the caller knows it, and Tool as the server does; both are empty for a list of
	// tasks.
	Spec drawbridge.Spec
	// Method is the MCP method of the call, Params its params as the caller sent them; to a counter that decides, with
	// the names of arguments that the server knows.
	Method string
	Params json.RawMessage
}

// A guardChain has the guards of a deck. It may be asked from several goroutines.
type guardChain struct {
	guards   []Guard
	counters []CountingGuard
	hiders   []HidingGuard
	log      *slog.Logger
}

// newGuardChain makes a gate of guards, in the order in which they are asked: counters after all others, see Count.
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

// check asks whether a call may be made, and gives the verdict that decided: the last one that names a rule, or
// nobody's, which allows.
// Where no guard refuses the call, asked has the verdicts of those who want a person asked: a person is not troubled
// with what another guard refuses. The error is a *drawbridge.Fault: NotFound for what is hidden from the caller,
// PolicyBlocked or the code of the verdict for what is refused.
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

// countCall asks the counters about a call that passed, and is about to be made. The error is as for Pass, with the
// verdict that refused.
func (g *guardChain) countCall(ctx context.Context, q Question) (verdict drawbridge.Verdict, err error) {
	for _, c := range g.counters {
		if verdict := g.askGuard(ctx, c, &q); verdict.Effect != drawbridge.Allow {
			verdict, _, err = refuseByCounter(q, verdict)
			return verdict, err
		}
	}
	return drawbridge.Verdict{}, nil
}

// refuseByCounter refuses what a counter does.
func refuseByCounter(q Question, verdict drawbridge.Verdict) (drawbridge.Verdict, []drawbridge.Verdict, error) {
	verdict.Effect, verdict.Reason = drawbridge.Deny, cmp.Or(verdict.Reason, "it is not allowed")
	return verdict, nil, refusalFault(q.Method, q.Spec, verdict, errors.New(verdict.Reason))
}

// refusalFault is the fault of a call that a guard refused, or a person, and why.
func refusalFault(method string, spec drawbridge.Spec, verdict drawbridge.Verdict, why error) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: cmp.Or(verdict.Code, drawbridge.PolicyBlocked),
		Step: fmt.Sprintf("%s %s", method, clipText(string(spec.Name))), Err: why, Next: verdict.Next,
	}
}

// A previewGuard counter says what it would decide, and counts nothing.
type previewGuard struct{ CountingGuard }

// Decide implements [Guard].
func (r previewGuard) Decide(ctx context.Context, q Question) drawbridge.Verdict {
	return r.Preview(ctx, q)
}

// askGuard asks one guard. One that panics has given no verdict.
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

// hidesAnything says whether anything may be hidden from anybody.
func (g *guardChain) hidesAnything() bool {
	return slices.ContainsFunc(g.hiders, HidingGuard.HidesAnything)
}

// hides says whether something is hidden from the caller, see Screen. A screen that panics hides it.
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

// hideReason says why a caller may not know of something, for the record: they do not hold its scopes, or a screen
// hides it. It is the zero verdict where they may.
func (g *guardChain) hideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (why drawbridge.Verdict) {
	if !caller.HasScopes(spec.Scopes) {
		why = drawbridge.Verdict{Rule: "scopes", Reason: fmt.Sprintf("the caller does not hold %v", spec.Scopes)}
	}
	defer func() {
		if p := recover(); p != nil {
			why = drawbridge.Verdict{Rule: "panic", Reason: "a guard panicked"}
		}
	}()
	for _, s := range g.hiders { // also where it is known already: a name that nobody has takes as long
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

// callerClass says what the caller is to all screens together.
func (g *guardChain) callerClass(caller drawbridge.Caller) string {
	var all strings.Builder
	for _, s := range g.hiders {
		fmt.Fprintf(&all, "%q ", s.CallerClass(caller))
	}
	return all.String()
}

// methodSubject says for people what a method is about.
func methodSubject(method string) string {
	word, _, _ := strings.Cut(method, "/")
	if word == "completion" {
		return "reference"
	}
	return strings.TrimSuffix(word, "s")
}

// unknownNameFault is the one fault for what does not exist and for what a caller may not know of.
func unknownNameFault(word, name string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("unknown %s %s", word, clipText(name)),
	}
}

// clipText shortens what a caller wrote to what an error may repeat.
func clipText(text string) string { return safetext.Truncate(text, 200, safetext.Bytes, "…") }
