// Package meter is the guard that counts calls of tools: what is left of a caller's quotas, how many calls a server had in the
// last minute, and whether somebody makes the same call again and again.
//
// Quotas are kept in the store, by the caller's principal: neither a new connection nor a new process gives more, and of calls
// made at once no more pass than there are. A call is counted before it is made, so that an end of this process in between
// neither loses nor doubles it. What the gateway repeats by itself, and the rounds in which a caller answers what a server asks,
// are no new calls; an answer that is sent once more is one. Where calls cannot be counted there are none.
package meter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/limits"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Kind is the kind of the accounts that hold the purses of callers, by principal.
const Kind = "calls"

// The names of the quotas in a purse.
const (
	Session = "session"
	Caller  = "caller"
)

// Pause is how long a caller makes no call until the next one begins a new session.
const Pause = 30 * time.Minute

// DefaultSameErrors is how often the same call may end in the same error in a minute where nobody says otherwise. Calls that
// succeed are not counted then: who waits for something asks again and again, and so does who measures.
const DefaultSameErrors = 25

// Quotas are the quotas of a caller: so many calls of a session, and so many in each time of that length. Where a number is 0
// there is no such quota.
func Quotas(session, caller int, every time.Duration) (all []limits.Quota) {
	if session > 0 {
		all = append(all, limits.Quota{Name: Session, Max: session, Idle: Pause})
	}
	if caller > 0 {
		all = append(all, limits.Quota{Name: Caller, Max: caller, Every: every})
	}
	return all
}

// A Store keeps accounts that one process at a time changes.
type Store interface {
	// Change gives work the body of an account and the time, and keeps what it gives. An error of work changes nothing, and
	// comes back as it is.
	Change(ctx context.Context, kind, name string, work func(body []byte, now time.Time) ([]byte, error)) error
}

// Options say what is counted. The zero value counts errors that repeat, by the default.
type Options struct {
	// Quotas are those of each caller; with any of them the Store is needed.
	Quotas []limits.Quota
	Store  Store
	// SameErrors and SameCalls are how often the same call may end in the same error, or the same way at all, in a minute: 0
	// is the default, below 0 is any number.
	SameErrors, SameCalls int
	// Logger is told why calls cannot be counted; nil is silence.
	Logger *slog.Logger
	// Now is the clock of what is not in the store; nil is time.Now.
	Now func() time.Time
}

// A Meter counts the calls of a process, of all its gateways.
type Meter struct {
	o       Options
	pace    limits.Pace
	breaker *limits.Breaker
	// rounds are the answers of callers to what servers asked, by their states.
	rounds limits.Once
}

// New makes a meter that has counted nothing.
func New(o Options) *Meter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SameErrors == 0 {
		o.SameErrors = DefaultSameErrors
	}
	loops := limits.Loops{Errors: max(0, o.SameErrors), Calls: max(0, o.SameCalls)}
	return &Meter{o: o, breaker: limits.NewBreaker(loops, func(args []byte) []byte { return wire.Canonical(args) }), rounds: limits.Once{Life: deck.StateLife}}
}

// A Pace is how many calls a server may have in any 60 seconds, 0 for any number. Name tells servers apart that are called the
// same in different configurations.
type Pace struct {
	Name string
	Max  int
}

// Guard makes the guard of a deck. Paces gives the pace of a server; it must not wait. What another guard refuses, or a person,
// is not counted.
func (m *Meter) Guard(paces func(drawbridge.ServerID) Pace) deck.Guard { return guard{m, paces} }

type guard struct {
	*Meter
	paces func(drawbridge.ServerID) Pace
}

var _ deck.Counter = guard{}

// Decide counts a tools/call, and allows all else.
func (g guard) Decide(ctx context.Context, q deck.Question) drawbridge.Verdict {
	return g.decide(ctx, q, true)
}

// Room says what Decide would, and counts nothing.
func (g guard) Room(ctx context.Context, q deck.Question) drawbridge.Verdict {
	return g.decide(ctx, q, false)
}

func (g guard) decide(ctx context.Context, q deck.Question, count bool) drawbridge.Verdict {
	if q.Method != wire.MethodToolsCall {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	now := g.o.Now()
	site := limits.Site{Caller: q.Caller.Principal, Server: string(q.Spec.Server), Tool: q.Spec.Tool}
	if loop, held := g.breaker.Held(site, arguments(q.Params), now); held {
		return looped(loop, now)
	}
	p := g.paces(q.Spec.Server)
	if p.Max > 0 {
		take := g.pace.Room
		if count {
			take = g.pace.Take
		}
		if again, ok := take(p.Name, p.Max, now); !ok {
			return drawbridge.Verdict{
				Rule: "rate_limit", Code: drawbridge.RateLimited, Next: in(again.Sub(now)),
				Reason: fmt.Sprintf("rate limit exceeded for server '%s' (max %d/min)", q.Spec.Server, p.Max),
			}
		}
	}
	verdict := g.debit(ctx, q, count)
	if verdict.Effect != drawbridge.Allow && count && p.Max > 0 {
		g.pace.Return(p.Name, now) // who has nothing left does not use up what others may call
	}
	return verdict
}

// looped refuses one more of the same call.
func looped(loop limits.Loop, now time.Time) drawbridge.Verdict {
	end := "in the same way"
	if loop.Errors {
		end = "in the same error"
	}
	return drawbridge.Verdict{
		Rule: "loop", Code: drawbridge.RateLimited, Next: "change the arguments, or wait: " + in(loop.Again.Sub(now)),
		Reason: fmt.Sprintf("the same call was made %d times in 60s, and ended %s each time", loop.Times, end),
	}
}

// errLook ends a look at a purse.
var errLook = errors.New("nothing is taken")

// goesOn says whether a call goes on with an earlier one: its state was given out with that one, which the deck has looked at,
// and comes back for the first time.
func (g guard) goesOn(q deck.Question, count bool) bool {
	state, ok := wire.Text(wire.Get(q.Params, "requestState"))
	switch {
	case !ok:
		return false
	case count:
		return g.rounds.First(state, g.o.Now())
	}
	return g.rounds.New(state, g.o.Now())
}

// debit takes the call out of the caller's quotas, or looks whether it could. One that goes on with an earlier call is not a
// new one.
func (g guard) debit(ctx context.Context, q deck.Question, count bool) drawbridge.Verdict {
	allow := drawbridge.Verdict{Effect: drawbridge.Allow}
	if len(g.o.Quotas) == 0 || g.goesOn(q, count) {
		return allow
	}
	blocked := drawbridge.Verdict{Rule: "quota", Code: drawbridge.PolicyBlocked, Reason: "quota_blocked: calls cannot be counted", Next: "the log of the gateway says why"}
	if g.o.Store == nil {
		return blocked
	}
	var at time.Time
	err := g.o.Store.Change(ctx, Kind, q.Caller.Principal, func(body []byte, now time.Time) ([]byte, error) {
		at = now
		purse, err := limits.ReadPurse(body)
		if err != nil {
			return nil, err
		}
		if purse, err = purse.Debit(g.o.Quotas, now); err != nil {
			return nil, err
		}
		if !count {
			return nil, errLook
		}
		return purse.Text()
	})
	spent, ok := errors.AsType[*limits.SpentError](err)
	switch {
	case err == nil, errors.Is(err, errLook):
		return allow
	case !ok:
		g.o.Logger.Error("calls cannot be counted, and are refused", "principal", q.Caller.Principal, "error", err)
		if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Code == drawbridge.Transient {
			blocked.Code, blocked.Next = f.Code, "try again"
		}
		return blocked
	case spent.Quota.Name == Session:
		blocked.Reason = fmt.Sprintf("quota_blocked: all %d tool calls of this session are used", spent.Quota.Max)
		blocked.Next = fmt.Sprintf("a session ends after %s without a call: %s", words(spent.Quota.Idle), in(spent.Again.Sub(at)))
	default:
		blocked.Reason = fmt.Sprintf("quota_blocked: all %d tool calls in %s are used", spent.Quota.Max, words(spent.Quota.Every))
		blocked.Next = in(spent.Again.Sub(at))
	}
	return blocked
}

// longestError is the most bytes of a result that is looked at for an error.
const longestError = 64 << 10

// Ended counts how a call of a server ended, as the server was sent it. What ended for no reason of the call's own, such as a
// server that is away, counts for nothing.
func (m *Meter) Ended(id drawbridge.ServerID, call drawbridge.Call, result drawbridge.Result, err error) {
	if call.Method != wire.MethodToolsCall {
		return
	}
	failed := err != nil
	if failed {
		switch drawbridge.AsFault(err).Code {
		case drawbridge.Transient, drawbridge.RateLimited, drawbridge.PolicyBlocked:
			return
		}
	} else if len(result.Raw) <= longestError && wire.MayHave(result.Raw, `"isError"`) {
		failed = string(wire.Get(result.Raw, "isError")) == "true"
	}
	now := m.o.Now()
	if m.breaker.Idle(failed, now) {
		return
	}
	name, said := nameAndArguments(call.Params)
	site := limits.Site{Caller: call.Caller.Principal, Server: string(id), Tool: name}
	m.breaker.Ended(site, func() []byte { return said }, failed, func() []byte {
		if err != nil {
			return []byte(drawbridge.AsFault(err).Error())
		}
		return result.Raw
	}, now)
}

// nameAndArguments reads both out of the params of a call in one go.
func nameAndArguments(params json.RawMessage) (name string, arguments json.RawMessage) {
	for m := range wire.Members(params) {
		switch {
		case m.Is("name"):
			name, _ = wire.Text(m.Value)
		case m.Is("arguments"):
			arguments = m.Value
		}
	}
	return name, arguments
}

// arguments gives the arguments of a call.
func arguments(params json.RawMessage) func() []byte {
	return func() []byte { return wire.Get(params, "arguments") }
}

// in says when there is one more call.
func in(d time.Duration) string {
	return "again in " + words(max(time.Second, (d+time.Second-1).Truncate(time.Second)))
}

// words is a time without the parts of it that are zero.
func words(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(text, zero); ok {
			text = rest + zero[:1]
		}
	}
	return text
}
