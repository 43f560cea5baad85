package guards

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
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/ratelimit"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// quotaAccountKind is the kind of the accounts that hold the purses of callers, by principal.
const quotaAccountKind = "calls"

// The names of the quotas in a purse.
const (
	sessionQuota = "session"
	callerQuota  = "caller"
)

// sessionIdleTime is how long a caller makes no call until the next one begins a new session.
const sessionIdleTime = 30 * time.Minute

// defaultSameErrors is how often the same call may end in the same error in a minute where nobody says otherwise.
// Calls that succeed are not counted then: who waits for something asks again and again, and so does who measures.
const defaultSameErrors = 25

// CallerQuotas are the quotas of a caller: so many calls of a session, and so many in each time of that length. Where
// a number is 0 there is no such quota.
func CallerQuotas(session, caller int, every time.Duration) (all []ratelimit.Quota) {
	if session > 0 {
		all = append(all, ratelimit.Quota{Name: sessionQuota, Max: session, Idle: sessionIdleTime})
	}
	if caller > 0 {
		all = append(all, ratelimit.Quota{Name: callerQuota, Max: caller, Every: every})
	}
	return all
}

// A AccountStore keeps accounts that one process at a time changes.
type AccountStore interface {
	// UpdateAccount gives work the body of an account and the time, and keeps what it gives. An error of work changes
	// nothing, and comes back as it is.
	UpdateAccount(ctx context.Context, kind, name string, work func(body []byte, now time.Time) ([]byte, error)) error
}

// LimiterOptions say what is counted. The zero value counts errors that repeat, by the default.
type LimiterOptions struct {
	// Quotas are those of each caller; with any of them the Store is needed.
	Quotas   []ratelimit.Quota
	Accounts AccountStore
	// SameErrors and SameCalls are how often the same call may end in the same error, or the same way at all, in a
	// minute: 0 is the default, below 0 is any number.
	SameErrors, SameCalls int
	// Logger is told why calls cannot be counted; nil is silence.
	Logger *slog.Logger
	// Now is the clock of what is not in the store; nil is time.Now.
	Now func() time.Time
}

// A CallLimiter counts the calls of a process, of all its gateways.
type CallLimiter struct {
	o       LimiterOptions
	pace    ratelimit.WindowLimiter
	breaker *ratelimit.LoopBreaker
	// usedStates are the answers of callers to what servers asked, by their states.
	usedStates ratelimit.SeenSet
}

// NewCallLimiter makes a meter that has counted nothing.
func NewCallLimiter(o LimiterOptions) *CallLimiter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SameErrors == 0 {
		o.SameErrors = defaultSameErrors
	}
	loops := ratelimit.LoopLimits{Errors: max(0, o.SameErrors), Calls: max(0, o.SameCalls)}
	return &CallLimiter{o: o, breaker: ratelimit.NewLoopBreaker(loops,
		func(args []byte) []byte { return rawjson.Canonical(args) }),
		usedStates: ratelimit.SeenSet{TTL: deck.StateLife}}
}

// A ServerRate is how many calls a server may have in any 60 seconds, 0 for any number. Name tells servers apart that
// are called the same in different configurations.
type ServerRate struct {
	Name string
	Max  int
}

// Guard makes the guard of a deck. Paces gives the pace of a server; it must not wait. What another guard refuses, or
// a person, is not counted.
func (m *CallLimiter) Guard(paces func(drawbridge.ServerID) ServerRate) deck.Guard {
	return limitGuard{m, paces}
}

type limitGuard struct {
	*CallLimiter
	rates func(drawbridge.ServerID) ServerRate
}

var _ deck.CountingGuard = limitGuard{}

// Decide counts a tools/call, and allows all else.
func (g limitGuard) Decide(ctx context.Context, q deck.Question) drawbridge.Verdict {
	return g.decide(ctx, q, true)
}

// Preview says what Decide would, and counts nothing.
func (g limitGuard) Preview(ctx context.Context, q deck.Question) drawbridge.Verdict {
	return g.decide(ctx, q, false)
}

func (g limitGuard) decide(ctx context.Context, q deck.Question, count bool) drawbridge.Verdict {
	if q.Method != mcp.MethodToolsCall {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	now := g.o.Now()
	site := ratelimit.CallSite{Caller: q.Caller.Principal, Server: string(q.Spec.Server), Tool: q.Spec.Tool}
	if loop, held := g.breaker.CheckCall(site, lazyArguments(q.Params), now); held {
		return loopVerdict(loop, now)
	}
	p := g.rates(q.Spec.Server)
	if p.Max > 0 {
		take := g.pace.CheckRoom
		if count {
			take = g.pace.Take
		}
		if again, ok := take(p.Name, p.Max, now); !ok {
			return drawbridge.Verdict{
				Rule: "rate_limit", Code: drawbridge.RateLimited, Next: retryText(again.Sub(now)),
				Reason: fmt.Sprintf("rate limit exceeded for server '%s' (max %d/min)", q.Spec.Server, p.Max),
			}
		}
	}
	verdict := g.takeQuota(ctx, q, count)
	if verdict.Effect != drawbridge.Allow && count && p.Max > 0 {
		g.pace.GiveBack(p.Name, now) // who has nothing left does not use up what others may call
	}
	return verdict
}

// loopVerdict refuses one more of the same call.
func loopVerdict(loop ratelimit.LoopState, now time.Time) drawbridge.Verdict {
	end := "in the same way"
	if loop.Errors {
		end = "in the same error"
	}
	return drawbridge.Verdict{
		Rule: "loop", Code: drawbridge.RateLimited, Next: "change the arguments, or wait: " +
			retryText(loop.RetryAt.Sub(now)),
		Reason: fmt.Sprintf("the same call was made %d times in 60s, and ended %s each time", loop.Times, end),
	}
}

// errDryRun ends a look at a purse.
var errDryRun = errors.New("nothing is taken")

// continuesCall says whether a call goes on with an earlier one: its state was given out with that one, which the deck
// has looked at, and comes back for the first time.
func (g limitGuard) continuesCall(q deck.Question, count bool) bool {
	state, ok := rawjson.DecodeString(rawjson.Get(q.Params, "requestState"))
	switch {
	case !ok:
		return false
	case count:
		return g.usedStates.AddIfNew(state, g.o.Now())
	}
	return g.usedStates.IsNew(state, g.o.Now())
}

// takeQuota takes the call out of the caller's quotas, or looks whether it could. One that goes on with an earlier
// call is not a new one.
func (g limitGuard) takeQuota(ctx context.Context, q deck.Question, count bool) drawbridge.Verdict {
	allow := drawbridge.Verdict{Effect: drawbridge.Allow}
	if len(g.o.Quotas) == 0 || g.continuesCall(q, count) {
		return allow
	}
	blocked := drawbridge.Verdict{Rule: "quota", Code: drawbridge.PolicyBlocked,
		Reason: "quota_blocked: calls cannot be counted", Next: "the log of the gateway says why"}
	if g.o.Accounts == nil {
		return blocked
	}
	var at time.Time
	err := g.o.Accounts.UpdateAccount(ctx, quotaAccountKind, q.Caller.Principal,
		func(body []byte, now time.Time) ([]byte, error) {
			at = now
			purse, err := ratelimit.ParseUsage(body)
			if err != nil {
				return nil, err
			}
			if purse, err = purse.Spend(g.o.Quotas, now); err != nil {
				return nil, err
			}
			if !count {
				return nil, errDryRun
			}
			return purse.Encode()
		})
	spent, ok := errors.AsType[*ratelimit.QuotaExceededError](err)
	switch {
	case err == nil, errors.Is(err, errDryRun):
		return allow
	case !ok:
		g.o.Logger.Error("calls cannot be counted, and are refused", "principal", q.Caller.Principal, "error", err)
		if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Code == drawbridge.Transient {
			blocked.Code, blocked.Next = f.Code, "try again"
		}
		return blocked
	case spent.Quota.Name == sessionQuota:
		blocked.Reason = fmt.Sprintf("quota_blocked: all %d tool calls of this session are used", spent.Quota.Max)
		blocked.Next = fmt.Sprintf("a session ends after %s without a call: %s", formatDuration(spent.Quota.Idle),
			retryText(spent.RetryAt.Sub(at)))
	default:
		blocked.Reason = fmt.Sprintf("quota_blocked: all %d tool calls in %s are used", spent.Quota.Max,
			formatDuration(spent.Quota.Every))
		blocked.Next = retryText(spent.RetryAt.Sub(at))
	}
	return blocked
}

// maxErrorResult is the most bytes of a result that is looked at for an error.
const maxErrorResult = 64 << 10

// CallEnded counts how a call of a server ended, as the server was sent it. What ended for no reason of the call's
// own, such as a server that is away, counts for nothing.
func (m *CallLimiter) CallEnded(id drawbridge.ServerID, call drawbridge.Call, result drawbridge.Result, err error) {
	if call.Method != mcp.MethodToolsCall {
		return
	}
	failed := err != nil
	if failed {
		switch drawbridge.AsFault(err).Code {
		case drawbridge.Transient, drawbridge.RateLimited, drawbridge.PolicyBlocked:
			return
		}
	} else if len(result.Raw) <= maxErrorResult && rawjson.MayContain(result.Raw, `"isError"`) {
		failed = string(rawjson.Get(result.Raw, "isError")) == "true"
	}
	now := m.o.Now()
	if m.breaker.CanSkipRecording(failed, now) {
		return
	}
	name, said := nameAndArguments(call.Params)
	site := ratelimit.CallSite{Caller: call.Caller.Principal, Server: string(id), Tool: name}
	m.breaker.RecordEnd(site, func() []byte { return said }, failed, func() []byte {
		if err != nil {
			return []byte(drawbridge.AsFault(err).Error())
		}
		return result.Raw
	}, now)
}

// nameAndArguments reads both out of the params of a call in one go.
func nameAndArguments(params json.RawMessage) (name string, arguments json.RawMessage) {
	for m := range rawjson.Members(params) {
		switch {
		case m.HasName("name"):
			name, _ = rawjson.DecodeString(m.Value)
		case m.HasName("arguments"):
			arguments = m.Value
		}
	}
	return name, arguments
}

// lazyArguments gives the arguments of a call.
func lazyArguments(params json.RawMessage) func() []byte {
	return func() []byte { return rawjson.Get(params, "arguments") }
}

// retryText says when there is one more call.
func retryText(d time.Duration) string {
	return "again in " + formatDuration(max(time.Second, (d+time.Second-1).Truncate(time.Second)))
}

// formatDuration is a time without the parts of it that are zero.
func formatDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(text, zero); ok {
			text = rest + zero[:1]
		}
	}
	return text
}
