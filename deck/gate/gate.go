// Package gate asks the guards of a deck: whether a call may be made, and from whom a card is hidden.
//
// It promises that all guards must allow a call; that a guard which panics, or says nothing, has refused it; and that what
// is hidden from a caller is refused in the words for what does not exist.
package gate

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
	"github.com/drawbridge-mcp/drawbridge/deck/mishap"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Guard decides on calls. Every guard must allow a call; a guard that panics denies.
type Guard interface {
	// Decide answers a question. The zero verdict denies. It must not keep the question.
	Decide(ctx context.Context, q Question) drawbridge.Verdict
}

// A Counter is a guard that counts the calls which it allows. It decides last: where no other guard refuses a call, and a
// person, if one was to be asked, has allowed it. What it says is allow, or else a no.
type Counter interface {
	Guard
	// Room says what Decide would, and counts nothing: a person is not asked about what would be refused after it.
	Room(ctx context.Context, q Question) drawbridge.Verdict
}

// A Screen is a guard that knows beforehand what no call of a caller will ever be allowed to: that is hidden from them.
type Screen interface {
	Guard
	// Hides says whether something is hidden from the caller: what kind it is, see Question, and what is known of it. With
	// no kind, the spec has a server only, all of which is meant.
	Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool
	// Class says in a word what the caller is to the screen: from callers of one class the same is hidden, as long as
	// the deck is not told that something changed.
	Class(caller drawbridge.Caller) string
	// Active says whether it hides anything at all from anybody.
	Active() bool
}

// A Teller is a screen that says why it hides something: for the record, and never for who is not to know.
type Teller interface {
	Screen
	// Why gives the verdict by which Hides says what it does of the same.
	Why(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict
}

// A Question is what a guard decides on: may this caller send these params to this card, or to one of its siblings?
type Question struct {
	Caller drawbridge.Caller
	// Kind is "tool", "prompt", "resource", "template" or "task"; empty where it is not known what is meant, as for a
	// request of an extension.
	Kind string
	// Spec is the card. For a prompt it has the prompt's name and definition; for a resource Name and Tool are URIs; for a
	// task Name is its id as the caller knows it, and Tool as the server does; both are empty for a list of tasks.
	Spec drawbridge.Spec
	// Method is the MCP method of the call, Params its params as the caller sent them; to a counter that decides, with the names of
	// arguments that the server knows.
	Method string
	Params json.RawMessage
}

// A Gate has the guards of a deck. It may be asked from several goroutines.
type Gate struct {
	guards   []Guard
	counters []Counter
	screens  []Screen
	log      *slog.Logger
}

// New makes a gate of guards, in the order in which they are asked: counters after all others, see Count.
func New(guards []Guard, log *slog.Logger) *Gate {
	g := &Gate{log: log}
	for _, guard := range guards {
		if c, ok := guard.(Counter); ok {
			g.counters = append(g.counters, c)
		} else {
			g.guards = append(g.guards, guard)
		}
		if s, ok := guard.(Screen); ok {
			g.screens = append(g.screens, s)
		}
	}
	return g
}

// Pass asks whether a call may be made, and gives the verdict that decided: the last one that names a rule, or nobody's, which
// allows.
// Where no guard refuses the call, asked has the verdicts of those who want a person asked: a person is not troubled with
// what another guard refuses. The error is a *drawbridge.Fault: NotFound for what is hidden from the caller, PolicyBlocked or
// the code of the verdict for what is refused.
func (g *Gate) Pass(ctx context.Context, q Question) (last drawbridge.Verdict, asked []drawbridge.Verdict, err error) {
	last = drawbridge.Verdict{Effect: drawbridge.Allow}
	for _, guard := range g.guards {
		verdict := g.ask(ctx, guard, &q)
		switch {
		case verdict.Effect == drawbridge.Allow:
			if verdict.Rule != "" || last.Rule == "" {
				last = verdict
			}
			continue
		case verdict.Hide:
			return verdict, nil, Unknown(WordOf(q.Method), string(q.Spec.Name))
		case verdict.Effect == drawbridge.Ask:
			asked = append(asked, verdict)
			continue
		case verdict.Reason == "":
			verdict.Reason = "it is not allowed"
		}
		return verdict, nil, Barred(q.Method, q.Spec, verdict, errors.New(verdict.Reason))
	}
	if len(asked) == 0 {
		return last, nil, nil
	}
	for _, c := range g.counters {
		if verdict := g.ask(ctx, roomy{c}, &q); verdict.Effect != drawbridge.Allow {
			return full(q, verdict)
		}
	}
	return asked[0], asked, nil
}

// Count asks the counters about a call that passed, and is about to be made. The error is as for Pass, with the verdict that
// refused.
func (g *Gate) Count(ctx context.Context, q Question) (verdict drawbridge.Verdict, err error) {
	for _, c := range g.counters {
		if verdict := g.ask(ctx, c, &q); verdict.Effect != drawbridge.Allow {
			verdict, _, err = full(q, verdict)
			return verdict, err
		}
	}
	return drawbridge.Verdict{}, nil
}

// full refuses what a counter does.
func full(q Question, verdict drawbridge.Verdict) (drawbridge.Verdict, []drawbridge.Verdict, error) {
	verdict.Effect, verdict.Reason = drawbridge.Deny, cmp.Or(verdict.Reason, "it is not allowed")
	return verdict, nil, Barred(q.Method, q.Spec, verdict, errors.New(verdict.Reason))
}

// Barred is the fault of a call that a guard refused, or a person, and why.
func Barred(method string, spec drawbridge.Spec, verdict drawbridge.Verdict, why error) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: cmp.Or(verdict.Code, drawbridge.PolicyBlocked),
		Step: fmt.Sprintf("%s %s", method, Clip(string(spec.Name))), Err: why, Next: verdict.Next,
	}
}

// A roomy counter says what it would decide, and counts nothing.
type roomy struct{ Counter }

// Decide implements [Guard].
func (r roomy) Decide(ctx context.Context, q Question) drawbridge.Verdict { return r.Room(ctx, q) }

// ask asks one guard. One that panics has given no verdict.
func (g *Gate) ask(ctx context.Context, guard Guard, q *Question) (verdict drawbridge.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a guard panicked, the call is refused", "card", q.Spec.Name, "panic", mishap.What(p), "at", mishap.Where())
			verdict = drawbridge.Verdict{}
		}
	}()
	return guard.Decide(ctx, *q)
}

// Screens says whether anything may be hidden from anybody.
func (g *Gate) Screens() bool {
	return slices.ContainsFunc(g.screens, Screen.Active)
}

// Hides says whether something is hidden from the caller, see Screen. A screen that panics hides it.
func (g *Gate) Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (hidden bool) {
	if len(g.screens) == 0 {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a guard panicked, the card is hidden", "card", spec.Name, "panic", mishap.What(p), "at", mishap.Where())
			hidden = true
		}
	}()
	for _, s := range g.screens {
		if s.Hides(caller, kind, spec) {
			return true
		}
	}
	return false
}

// Why says why a caller may not know of something, for the record: they do not hold its scopes, or a screen hides it. It is the
// zero verdict where they may.
func (g *Gate) Why(caller drawbridge.Caller, kind string, spec drawbridge.Spec) (why drawbridge.Verdict) {
	if !caller.Holds(spec.Scopes) {
		why = drawbridge.Verdict{Rule: "scopes", Reason: fmt.Sprintf("the caller does not hold %v", spec.Scopes)}
	}
	defer func() {
		if p := recover(); p != nil {
			why = drawbridge.Verdict{Rule: "panic", Reason: "a guard panicked"}
		}
	}()
	for _, s := range g.screens { // also where it is known already: a name that nobody has takes as long
		verdict := drawbridge.Verdict{Effect: drawbridge.Allow}
		if t, ok := s.(Teller); ok {
			verdict = t.Why(caller, kind, spec)
		} else if s.Hides(caller, kind, spec) {
			verdict = drawbridge.Verdict{Rule: "hidden"}
		}
		if verdict.Effect == drawbridge.Deny && why == (drawbridge.Verdict{}) {
			why = verdict
		}
	}
	return why
}

// Class says what the caller is to all screens together.
func (g *Gate) Class(caller drawbridge.Caller) string {
	var all strings.Builder
	for _, s := range g.screens {
		fmt.Fprintf(&all, "%q ", s.Class(caller))
	}
	return all.String()
}

// WordOf says for people what a method is about.
func WordOf(method string) string {
	word, _, _ := strings.Cut(method, "/")
	if word == "completion" {
		return "reference"
	}
	return strings.TrimSuffix(word, "s")
}

// Unknown is the one fault for what does not exist and for what a caller may not know of.
func Unknown(word, name string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("unknown %s %s", word, Clip(name)),
	}
}

// Clip shortens what a caller wrote to what an error may repeat.
func Clip(text string) string { return safetext.Truncate(text, 200, safetext.Bytes, "…") }
