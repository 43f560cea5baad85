package guards_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// A world has a clock, a store, and the guard that uses both.
type world struct {
	mu     sync.Mutex
	now    time.Time
	bodies map[string][]byte
	broken error
}

func newWorld() *world {
	return &world{now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), bodies: map[string][]byte{}}
}

func (w *world) UpdateAccount(_ context.Context, kind, name string,
	work func([]byte, time.Time) ([]byte, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	body, err := work(w.bodies[kind+" "+name], w.now)
	if err == nil {
		w.bodies[kind+" "+name] = body
	}
	return err
}

// A step is one call and what becomes of it.
type step struct {
	// wait is how long it comes after the last one.
	wait time.Duration
	who  string
	// method and server are tools/call and "s" where they are empty.
	method, server, params string
	// result is what the server answers, fault its fault; an empty result is a plain one.
	result string
	fault  *drawbridge.Fault
	want   drawbridge.Verdict
}

var (
	yes    = drawbridge.Verdict{Effect: drawbridge.Allow}
	failed = `{"content":[],"isError":true}`
	slow   = drawbridge.Verdict{Rule: "rate_limit", Code: drawbridge.RateLimited,
		Reason: "rate limit exceeded for server 'slow' (max 2/min)", Next: "again in 1m"}
)

func blocked(reason, next string) drawbridge.Verdict {
	return drawbridge.Verdict{Rule: "quota", Code: drawbridge.PolicyBlocked, Reason: "quota_blocked: " +
		reason, Next: next}
}

func looped(times int, end, next string) drawbridge.Verdict {
	return drawbridge.Verdict{
		Rule: "loop", Code: drawbridge.RateLimited, Next: "change the arguments, or wait: again in " + next,
		Reason: fmt.Sprintf("the same call was made %d times in 60s, and ended in the same %s each time", times, end),
	}
}

// play makes the calls of a story one after another.
func (w *world) play(t *testing.T, m *guards.CallLimiter, steps []step) {
	t.Helper()
	guard := m.Guard(func(id drawbridge.ServerID) guards.ServerRate {
		if id == "slow" {
			return guards.ServerRate{Name: "slow's row", Max: 2}
		}
		return guards.ServerRate{}
	})
	for i, s := range steps {
		w.now = w.now.Add(s.wait)
		if s.method == "" {
			s.method = mcp.MethodToolsCall
		}
		if s.server == "" {
			s.server = "s"
		}
		if s.params == "" {
			s.params = `{"name":"t","arguments":{"x":1}}`
		}
		// each time a new session
		caller := drawbridge.Caller{Kind: drawbridge.External, Principal: s.who, Session: fmt.Sprint(i)}
		id := drawbridge.ServerID(s.server)
		q := deck.Question{
			Caller: caller, Method: s.method, Params: json.RawMessage(s.params),
			Spec: drawbridge.Spec{Name: drawbridge.CardName(s.server + "__t"), Server: id, Tool: "t"},
		}
		for range 3 { // to look takes nothing, however often
			if diff := cmp.Diff(s.want, guard.(deck.CountingGuard).Preview(t.Context(), q)); diff != "" {
				t.Errorf("room for call %d (-want +got):\n%s", i, diff)
			}
		}
		got := guard.Decide(t.Context(), q)
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
		if got.Effect != drawbridge.Allow {
			continue
		}
		var err error
		if s.fault != nil {
			err = s.fault
		}
		m.CallEnded(id, drawbridge.Call{Caller: caller, Method: s.method, Params: json.RawMessage(s.params)},
			drawbridge.Result{Raw: json.RawMessage(s.result)}, err)
	}
}

func repeat(n int, s step) []step {
	all := make([]step, n)
	for i := range all {
		all[i] = s
	}
	return all
}

var (
	refusedFault = &drawbridge.Fault{Code: drawbridge.InvalidInput, Step: "call t on s"}
	awayFault    = &drawbridge.Fault{Code: drawbridge.Transient, Step: "call t on s"}
)

var meterCases = []struct {
	name    string
	options guards.LimiterOptions
	steps   []step
}{
	{"a session ends with a pause", guards.LimiterOptions{Quotas: guards.CallerQuotas(2, 0, 0)}, []step{
		{who: "ada", want: yes}, {who: "ada", wait: 29 * time.Minute, want: yes},
		{who: "ada", wait: time.Minute, want: blocked("all 2 tool calls of this session are used",
			"a session ends after 30m without a call: again in 29m")},
		{who: "bob", want: yes},
		{who: "ada", wait: 29 * time.Minute, want: yes},
	}},
	{"a caller's day", guards.LimiterOptions{Quotas: guards.CallerQuotas(0, 1, 24*time.Hour)}, []step{
		{who: "ada", want: yes},
		{who: "ada", wait: time.Hour, want: blocked("all 1 tool calls in 24h are used", "again in 23h")},
		{who: "ada", wait: 23 * time.Hour, want: yes},
	}},
	{"only new calls of tools count", guards.LimiterOptions{Quotas: guards.CallerQuotas(1, 0, 0)}, []step{
		{who: "ada", method: mcp.MethodResourcesRead, params: `{"uri":"r://1"}`, want: yes},
		{who: "ada", method: mcp.MethodPromptsGet, want: yes},
		{who: "ada", want: yes},
		{who: "ada", params: `{"name":"t","requestState":"x"}`, want: yes},
		{who: "ada", params: `{"name":"t","requestState":null}`,
			want: blocked("all 1 tool calls of this session are used",
				"a session ends after 30m without a call: again in 30m")},
	}},
	{"an answer sent again and again", guards.LimiterOptions{Quotas: guards.CallerQuotas(2, 0, 0)}, []step{
		{who: "ada", want: yes},
		{who: "ada", params: `{"name":"t","requestState":"x"}`, want: yes},
		{who: "ada", params: `{"name":"t","requestState":"y"}`, want: yes},
		{who: "ada", params: `{"name":"t","requestState":"\u0078"}`, want: yes}, // the second call
		{who: "ada", params: `{"name":"t","requestState":"x"}`, wait: 29 * time.Minute,
			want: blocked("all 2 tool calls of this session are used",
				"a session ends after 30m without a call: again in 1m")},
		{who: "ada", params: `{"name":"t","requestState":7}`,
			want: blocked("all 2 tool calls of this session are used",
				"a session ends after 30m without a call: again in 1m")},
	}},
	{"who has nothing left uses up no pace", guards.LimiterOptions{Quotas: guards.CallerQuotas(1, 0, 0)},
		[]step{
			{who: "ada", server: "slow", want: yes},
			{who: "ada", server: "slow", want: blocked("all 1 tool calls of this session are used",
				"a session ends after 30m without a call: again in 30m")},
			{who: "bob", server: "slow", want: yes}, {who: "eve", server: "slow", want: slow},
		}},
	{"a server's pace", guards.LimiterOptions{}, []step{
		{who: "ada", server: "slow", want: yes}, {who: "bob", server: "slow", want: yes},
		{who: "eve", server: "slow", want: slow},
		{who: "eve", want: yes}, {who: "eve", server: "slow", wait: time.Minute, want: yes},
	}},
	{"what a pace refuses costs no quota", guards.LimiterOptions{Quotas: guards.CallerQuotas(3, 0, 0)}, []step{
		{who: "ada", server: "slow", want: yes}, {who: "ada", server: "slow", want: yes},
		{who: "ada", server: "slow", want: slow}, {who: "ada", want: yes},
	}},
	{"the same error", guards.LimiterOptions{}, append(repeat(25, step{who: "ada", result: failed, want: yes}),
		step{who: "ada", params: `{ "arguments" : { "x" : 1 }, "name":"t"}`, want: looped(25, "error", "1m")},
		step{who: "ada", params: `{"name":"t","arguments":{"x":2}}`, want: yes},
		step{who: "bob", want: yes},
		step{who: "ada", wait: time.Minute, want: yes},
	)},
	{"the same fault", guards.LimiterOptions{SameErrors: 2},
		append(repeat(2, step{who: "ada", fault: refusedFault, want: yes}),
			step{who: "ada", want: looped(2, "error", "1m")})},
	{"a server that is away", guards.LimiterOptions{SameErrors: 2},
		repeat(100, step{who: "ada", fault: awayFault, want: yes})},
	{"answers by default", guards.LimiterOptions{}, repeat(1000, step{who: "ada", want: yes})},
	{"the same answer", guards.LimiterOptions{SameCalls: 3}, append(repeat(3, step{who: "ada", want: yes}),
		step{who: "ada", want: looped(3, "way", "1m")})},
	{"no breaker", guards.LimiterOptions{SameErrors: -1, SameCalls: -1},
		repeat(100, step{who: "ada", result: failed, want: yes})},
}

func TestMeter(t *testing.T) {
	for _, tt := range meterCases {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			tt.options.Accounts, tt.options.Now = w, func() time.Time { return w.now }
			w.play(t, guards.NewCallLimiter(tt.options), tt.steps)
		})
	}
}

// TestWithoutTheStoreNothingIsCalled takes away what a quota needs.
func TestWithoutTheStoreNothingIsCalled(t *testing.T) {
	const cannot = "calls cannot be counted"
	damaged, gone := newWorld(), newWorld()
	damaged.bodies["calls ada"] = []byte(`{"session":{"used":-5}}`)
	gone.broken = errors.New("the disk is gone")
	busy := newWorld()
	busy.broken = &drawbridge.Fault{Code: drawbridge.Transient}
	later := blocked(cannot, "try again")
	later.Code = drawbridge.Transient
	for name, tt := range map[string]struct {
		store guards.AccountStore
		want  drawbridge.Verdict
	}{
		"no store": {nil, blocked(cannot, "see the log of the gateway")},
		"damaged":  {damaged, blocked(cannot, "see the log of the gateway")},
		"gone":     {gone, blocked(cannot, "see the log of the gateway")},
		"busy":     {busy, later},
	} {
		t.Run(name, func(t *testing.T) {
			newWorld().play(t, guards.NewCallLimiter(guards.LimiterOptions{Quotas: guards.CallerQuotas(5, 0, 0),
				Accounts: tt.store}), []step{{who: "ada", want: tt.want}})
		})
	}
}

// BenchmarkDecide is what the guard costs a call where nothing is bounded.
func BenchmarkDecide(b *testing.B) {
	m := guards.NewCallLimiter(guards.LimiterOptions{})
	g := m.Guard(func(drawbridge.ServerID) guards.ServerRate { return guards.ServerRate{} })
	params := json.RawMessage(`{"name":"t","arguments":{"path":"0123456789012345678901234567890123456789"}}`)
	q := deck.Question{Spec: drawbridge.Spec{Server: "s", Tool: "t"}, Method: mcp.MethodToolsCall, Params: params}
	call := drawbridge.Call{Method: mcp.MethodToolsCall, Params: params}
	result := drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)}
	b.ReportAllocs()
	for b.Loop() {
		if v := g.Decide(b.Context(), q); v.Effect != drawbridge.Allow {
			b.Fatal(v)
		}
		m.CallEnded("s", call, result, nil)
	}
}
