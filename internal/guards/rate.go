package guards

import (
	"cmp"
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
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// quotaAccountKind is the kind of the accounts in the store that contain how much of their quotas callers have used.
// The account's name is the caller's principal.
const quotaAccountKind = "calls"

// The names of the quotas in an account.
const (
	sessionQuota = "session"
	callerQuota  = "caller"
)

// sessionIdleTime is the time without calls after which a new session begins.
const sessionIdleTime = 30 * time.Minute

// defaultSameErrors is the default limit, per minute, of equal calls by one caller that end in the same error. For
// successful calls there is no default limit, since a client that polls repeats them.
const defaultSameErrors = 25

// CallerQuotas returns the quotas of a caller. The caller may make at most session calls in a session, and at most
// caller calls in each period of length every. A number of 0 means no quota.
func CallerQuotas(session, caller int, every time.Duration) (all []Quota) {
	if session > 0 {
		all = append(all, Quota{Name: sessionQuota, Max: session, Idle: sessionIdleTime})
	}
	if caller > 0 {
		all = append(all, Quota{Name: callerQuota, Max: caller, Every: every})
	}
	return all
}

// An AccountStore stores accounts. Only one process at a time can change an account.
type AccountStore interface {
	// UpdateAccount calls work with the body of an account and the current time, and stores the body that work returns.
	// If work returns an error, nothing is stored, and UpdateAccount returns the same error.
	UpdateAccount(ctx context.Context, kind, name string, work func(body []byte, now time.Time) ([]byte, error)) error
}

// LimiterOptions are the limits of a CallLimiter. With the zero value, only calls that repeat the same error are
// limited, by defaultSameErrors.
type LimiterOptions struct {
	// Quotas apply to each caller. If there are quotas, Accounts is required.
	Quotas   []Quota
	Accounts AccountStore
	// SameErrors is how often per minute the same call may end in the same error. SameCalls is how often per minute it
	// may end in the same result. 0 means the default, and a negative number means no limit.
	SameErrors, SameCalls int
	// Logger logs an error if a call cannot be counted; nil discards the errors.
	Logger *slog.Logger
	// Now is the clock for all limits except the quotas, which use the clock of the store; nil means time.Now.
	Now func() time.Time
}

// A CallLimiter limits the calls per server, the calls per caller, and repeated equal calls. It counts the calls of all
// gateways of a process.
type CallLimiter struct {
	o       LimiterOptions
	pace    windowLimiter
	breaker *loopBreaker
	// usedStates are the request states that were already used. A request state identifies the earlier call that a call
	// continues, and may be used once.
	usedStates seenSet
}

// NewCallLimiter returns a limiter with all counts at zero.
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
	loops := loopLimits{errors: max(0, o.SameErrors), calls: max(0, o.SameCalls)}
	return &CallLimiter{o: o, breaker: newLoopBreaker(loops,
		func(args []byte) []byte { return rawjson.Canonical(args) }),
		usedStates: seenSet{ttl: deck.StateLife}}
}

// A ServerRate limits the calls of a server to Max in any 60 seconds; 0 means no limit. Calls are counted under Name,
// so two servers with the same Name share the limit.
type ServerRate struct {
	Name string
	Max  int
}

// Guard returns the guard of a deck. rates returns the rate limit of a server, and must not block. If another guard or
// a person refuses a call, the call is not counted.
func (m *CallLimiter) Guard(rates func(drawbridge.ServerID) ServerRate) deck.Guard {
	return limitGuard{m, rates}
}

type limitGuard struct {
	*CallLimiter
	rates func(drawbridge.ServerID) ServerRate
}

var _ deck.CountingGuard = limitGuard{}

// Decide counts a call of a tool, and denies the call if a limit is exceeded. It allows requests of every other method.
func (g limitGuard) Decide(ctx context.Context, q deck.Question) drawbridge.Verdict {
	return g.decide(ctx, q, true)
}

// Preview returns the verdict that Decide would return, without counting the call.
func (g limitGuard) Preview(ctx context.Context, q deck.Question) drawbridge.Verdict {
	return g.decide(ctx, q, false)
}

func (g limitGuard) decide(ctx context.Context, q deck.Question, count bool) drawbridge.Verdict {
	if q.Method != mcp.MethodToolsCall {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	now := g.o.Now()
	site := callSite{caller: q.Caller.Principal, server: string(q.Spec.Server), tool: q.Spec.Tool}
	if loop, held := g.breaker.checkCall(site, lazyArguments(q.Params), now); held {
		return loopVerdict(loop, now)
	}
	p := g.rates(q.Spec.Server)
	if p.Max > 0 {
		take := g.pace.checkRoom
		if count {
			take = g.pace.take
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
		g.pace.giveBack(p.Name, now) // a call over the caller's quota does not use up the server's rate
	}
	return verdict
}

// loopVerdict returns the verdict that denies a call because equal calls ended in the same way too often.
func loopVerdict(loop loopState, now time.Time) drawbridge.Verdict {
	end := "in the same way"
	if loop.errors {
		end = "in the same error"
	}
	return drawbridge.Verdict{
		Rule: "loop", Code: drawbridge.RateLimited, Next: "change the arguments, or wait: " +
			retryText(loop.retryAt.Sub(now)),
		Reason: fmt.Sprintf("the same call was made %d times in 60s, and ended %s each time", loop.times, end),
	}
}

// errDryRun cancels the update of an account that is only read.
var errDryRun = errors.New("dry run")

// continuesCall reports whether a call continues an earlier call, by a request state that was not used before. The deck
// has already verified that the state is valid. If count is true, the state is then used.
func (g limitGuard) continuesCall(q deck.Question, count bool) bool {
	state, ok := rawjson.DecodeString(rawjson.Get(q.Params, "requestState"))
	switch {
	case !ok:
		return false
	case count:
		return g.usedStates.addIfNew(state, g.o.Now())
	}
	return g.usedStates.isNew(state, g.o.Now())
}

// takeQuota counts a call against the quotas of the caller. If count is false, it only checks whether the quotas allow
// the call. A call that continues an earlier call is not counted.
func (g limitGuard) takeQuota(ctx context.Context, q deck.Question, count bool) drawbridge.Verdict {
	allow := drawbridge.Verdict{Effect: drawbridge.Allow}
	if len(g.o.Quotas) == 0 || g.continuesCall(q, count) {
		return allow
	}
	blocked := drawbridge.Verdict{Rule: "quota", Code: drawbridge.PolicyBlocked,
		Reason: "quota_blocked: calls cannot be counted", Next: "see the log of the gateway"}
	if g.o.Accounts == nil {
		return blocked
	}
	var at time.Time
	var exceeded error
	err := g.o.Accounts.UpdateAccount(ctx, quotaAccountKind, q.Caller.Principal,
		func(body []byte, now time.Time) ([]byte, error) {
			at = now
			purse, err := parseUsage(body)
			if err != nil {
				return nil, err
			}
			purse, moved := purse.rebase(g.o.Quotas, now)
			after, err := purse.spend(g.o.Quotas, now)
			switch {
			case err != nil && moved && count: // the call is refused, but the moved counts are stored
				exceeded, after = err, purse
			case err != nil:
				return nil, err
			case !count:
				return nil, errDryRun
			}
			return after.encode()
		})
	err = cmp.Or(err, exceeded)
	spent, ok := errors.AsType[*quotaExceededError](err)
	switch {
	case err == nil, errors.Is(err, errDryRun):
		return allow
	case !ok:
		g.o.Logger.Error("count calls: the call is refused", "principal", q.Caller.Principal, "error", err)
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

// maxErrorResult is the maximum size, in bytes, of a result that is searched for isError.
const maxErrorResult = 64 << 10

// CallEnded counts how a call ended, for the limits SameErrors and SameCalls. call has the params that the server
// received. Errors that do not depend on the call, such as an unreachable server, are not counted.
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
	if m.breaker.canSkipRecording(failed, now) {
		return
	}
	name, said := nameAndArguments(call.Params)
	site := callSite{caller: call.Caller.Principal, server: string(id), tool: name}
	m.breaker.recordEnd(site, func() []byte { return said }, failed, func() []byte {
		if err != nil {
			return []byte(drawbridge.AsFault(err).Error())
		}
		return result.Raw
	}, now)
}

// nameAndArguments returns the members name and arguments of the params of a call, in one pass.
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

// lazyArguments returns a function that returns the arguments of a call.
func lazyArguments(params json.RawMessage) func() []byte {
	return func() []byte { return rawjson.Get(params, "arguments") }
}

// retryText returns the advice to call again after d.
func retryText(d time.Duration) string {
	return "again in " + formatDuration(max(time.Second, (d+time.Second-1).Truncate(time.Second)))
}

// formatDuration formats a duration like Duration.String, but without zero minutes and seconds at the end.
func formatDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(text, zero); ok {
			text = rest + zero[:1]
		}
	}
	return text
}
