package cards

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
	"github.com/google/go-cmp/cmp"
)

// A stage is a deck whose tools need approvals: "x__twice" two of them, "x__once" one.
type stage struct {
	approvals []deck.ScriptApproval
	refuse    error
	// granted is how many calls of "x__once" a grant covers, grantFault is why no grant can be read.
	granted    int
	grantFault error
	stale      bool
	sent       []string
}

func (s *stage) Tools(context.Context, drawbridge.Caller, bool) []drawbridge.Spec {
	var all []drawbridge.Spec
	for _, name := range []string{"once", "twice", "free", "my-tool"} {
		all = append(all, drawbridge.Spec{Name: drawbridge.CardName("x__" + name), Server: "x", Tool: name})
	}
	return all
}

func (s *stage) Find(context.Context, drawbridge.Caller, string, int) []drawbridge.Spec { return nil }

func (s *stage) LearnedOutput(_ context.Context, caller drawbridge.Caller, name drawbridge.CardName) (
	deck.LearnedOutput, bool) {
	if caller.Kind != drawbridge.Sandbox || name != "x__once" {
		return deck.LearnedOutput{}, false
	}
	return deck.LearnedOutput{Schema: json.RawMessage(`{"type":"string"}`), Results: 3, Version: 2}, true
}

func (s *stage) Approve(_ context.Context, a deck.ScriptApproval) (deck.ApprovalAnswer, error) {
	s.approvals = append(s.approvals, a)
	return deck.ApprovalAnswer{}, s.refuse
}

func (s *stage) UseGrant(_ context.Context, a deck.ScriptApproval) (deck.ApprovalAnswer, bool, error) {
	if s.granted > 0 && a.Requests[0].Spec.Name == "x__once" {
		s.granted--
		return deck.ApprovalAnswer{ID: "grant"}, true, nil
	}
	return deck.ApprovalAnswer{}, false, s.grantFault
}

func (s *stage) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	name := rawjson.GetString(call.Params, "name")
	times := map[string]int{"x__once": 1, "x__twice": 2}[name]
	for range times {
		_, err := call.Peer.(deck.CallCollector).Collect(ctx, deck.ApprovalRequest{Call: call,
			Spec: drawbridge.Spec{Name: drawbridge.CardName(name)}, StillValid: func() bool { return !s.stale }})
		if err != nil {
			return drawbridge.Result{}, &drawbridge.Fault{Code: drawbridge.PolicyBlocked, Step: name, Err: err}
		}
	}
	s.sent = append(s.sent, name+" "+string(rawjson.Get(call.Params, "arguments")))
	return drawbridge.Result{Raw: json.RawMessage(`{}`)}, nil
}

func openHost(t *testing.T, s *stage, patterns ...string) (*scriptHost, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	h := newScriptHost(s, drawbridge.Call{Caller: drawbridge.Caller{Kind: drawbridge.External, Principal: "ada"}},
		drawbridge.Spec{Name: RunPythonName}, runPythonInput{Code: "the script", Tools: patterns}, nil)
	t.Cleanup(func() {
		cancel()
		h.close()
	})
	return h, ctx
}

// A plainBatch sends calls without a record.
type plainBatch struct{}

func (plainBatch) Pause() func() { return func() {} }

func (plainBatch) Send(_ context.Context, _ string, send func() sandbox.Reply) sandbox.Reply {
	return send()
}

func TestCallsThatNeedApprovalAreCollected(t *testing.T) {
	s := &stage{}
	h, ctx := openHost(t, s)
	var ids []string
	for _, n := range []string{"1", "2", "3"} {
		reply := h.Call(ctx, sandbox.ToolCall{Name: "x.once", Arguments: json.RawMessage(`{"n":` + n + `}`), Line: 7})
		ids = append(ids, reply.Pending)
	}
	if reply := h.Call(ctx, sandbox.ToolCall{Name: "x__free", Arguments: json.RawMessage(`{}`)}); reply.Err != nil {
		t.Error(reply.Err)
	}
	if diff := cmp.Diff([]string{"x__free {}"}, s.sent); diff != "" {
		t.Errorf("sent before the approval (-want +got):\n%s", diff)
	}
	for _, reply := range h.Flush(ctx, append(ids, "9"), plainBatch{}) {
		if reply.Err != nil && !strings.Contains(reply.Err.Error(), "does not wait") {
			t.Error(reply.Err)
		}
	}
	if diff := cmp.Diff([]string{"x__free {}", `x__once {"n":1}`, `x__once {"n":2}`, `x__once {"n":3}`}, s.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if len(s.approvals) != 1 || len(s.approvals[0].Requests) != 3 || s.approvals[0].Lines[2] != 7 || s.approvals[0].Script != "the script" {
		t.Errorf("asked: %+v", s.approvals)
	}
}

// TestCallsThatAGrantCovers makes four calls, of which a grant covers two: only the others wait.
func TestCallsThatAGrantCovers(t *testing.T) {
	s := &stage{granted: 2}
	h, ctx := openHost(t, s)
	var pending []string
	for _, n := range []string{"1", "2", "3", "4"} {
		reply := h.Call(ctx, sandbox.ToolCall{Name: "x.once", Arguments: json.RawMessage(`{"n":` + n + `}`)})
		if reply.Err != nil {
			t.Error(reply.Err)
		}
		pending = append(pending, reply.Pending)
	}
	if diff := cmp.Diff([]string{"", "", "1", "2"}, pending); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`x__once {"n":1}`, `x__once {"n":2}`}, s.sent); diff != "" {
		t.Errorf("sent before the approval (-want +got):\n%s", diff)
	}
	h.Flush(ctx, pending[2:], plainBatch{})
	last := h.Call(ctx, sandbox.ToolCall{Name: "x.once"})
	h.Flush(ctx, []string{last.Pending}, plainBatch{})
	var allowed []int
	for _, a := range s.approvals {
		allowed = append(allowed, a.Allowed["x__once"])
	}
	if diff := cmp.Diff([]int{2, 4}, allowed); diff != "" {
		t.Errorf("calls before each question (-want +got):\n%s", diff)
	}
}

func TestGrantsThatCannotBeRead(t *testing.T) {
	s := &stage{grantFault: errors.New("the store does not answer")}
	h, ctx := openHost(t, s)
	reply := h.Call(ctx, sandbox.ToolCall{Name: "x.once"})
	if reply.Err == nil || reply.Pending != "" || len(s.sent)+len(s.approvals) > 0 {
		t.Errorf("%+v, sent %v, asked %d times", reply, s.sent, len(s.approvals))
	}
}

func TestNoApprovalSendsNothing(t *testing.T) {
	for name, s := range map[string]*stage{"a no": {refuse: errors.New("no")}, "a changed tool": {stale: true}} {
		h, ctx := openHost(t, s)
		reply := h.Call(ctx, sandbox.ToolCall{Name: "x.once"})
		if replies := h.Flush(ctx, []string{reply.Pending}, plainBatch{}); replies[0].Err == nil || len(s.sent) != 0 {
			t.Errorf("%s: %+v, sent %v", name, replies, s.sent)
		}
	}
}

func TestASecondQuestionOfACall(t *testing.T) {
	s := &stage{}
	h, ctx := openHost(t, s)
	reply := h.Call(ctx, sandbox.ToolCall{Name: "x.twice"})
	if replies := h.Flush(ctx, []string{reply.Pending}, plainBatch{}); replies[0].Err != nil || len(s.approvals) != 2 {
		t.Errorf("%+v, asked %d times", replies, len(s.approvals))
	}
}

func TestTooMuchWaits(t *testing.T) {
	h, ctx := openHost(t, &stage{})
	reply := h.Call(ctx, sandbox.ToolCall{Name: "x.once", Arguments: json.RawMessage(`{"text":"` + strings.Repeat("x", maxPendingBytes) + `"}`)})
	if reply.Err == nil || !strings.Contains(reply.Err.Error(), "wait for an approval have more than") {
		t.Errorf("%+v", reply)
	}
}

func TestNamesInScripts(t *testing.T) {
	for _, tt := range []struct {
		patterns []string
		name     string
		called   drawbridge.CardName
		ok       bool
	}{
		{nil, "x__free", "x__free", true},
		{nil, "x.free", "x__free", true},
		{nil, "x.my_tool", "x__my-tool", true},
		{nil, "later.tool", "later__tool", true}, // of a server that has not started
		{[]string{"x__f*"}, "x.free", "x__free", true},
		{[]string{"x__f*"}, "x.once", "", false},
		{[]string{"f*"}, "free", "", false}, // another spelling is not what was allowed
		{[]string{"call_*"}, "call_tool", "", false},
	} {
		h, ctx := openHost(t, &stage{}, tt.patterns...)
		if called, ok := h.calledName(ctx, tt.name); ok != tt.ok || ok && called != tt.called {
			t.Errorf("%v %s: %s, %v", tt.patterns, tt.name, called, ok)
		}
	}
}

// A runner keeps the script that it is asked to run.
type runner struct{ script sandbox.Script }

func (r *runner) Run(_ context.Context, script sandbox.Script, _ sandbox.Host) (sandbox.Outcome, error) {
	r.script = script
	return sandbox.Outcome{Stdout: "ok\n"}, nil
}

// noRuns keeps no runs.
type noRuns struct{ RunStore }

func (noRuns) New(SavedRun) RunJournal { return noJournal{} }

type noJournal struct{}

func (noJournal) Append(context.Context, ...[]byte) error { return nil }

func (noJournal) Close(context.Context, bool) error { return nil }

func TestWhatAScriptIsRunWith(t *testing.T) {
	r := &runner{}
	card := NewRunPythonCard(r, &stage{}, noRuns{}, sandbox.Limits{}, ScriptResults{}, nil)
	result, err := card.Run(t.Context(), drawbridge.Call{Params: json.RawMessage(
		`{"arguments":{"code":"1","arguments":{"id":9007199254740993},"timeout":1000000}}`)})
	if err != nil || result.IsError() {
		t.Fatalf("%s, %v", result.Raw, err)
	}
	if string(r.script.Arguments) != `{"id":9007199254740993}` || r.script.Limits.Time != 30*time.Second {
		t.Errorf("arguments %s, time %v", r.script.Arguments, r.script.Limits.Time)
	}
	for _, bad := range []string{`{"code":" "}`, `{"code":"1","tools":["["]}`, `{"code":"1","timeout":-1}`, `{"code":"1","arguments":[]}`} {
		result, err := card.Run(t.Context(), drawbridge.Call{Params: json.RawMessage(`{"arguments":` + bad + `}`)})
		if err != nil || !result.IsError() {
			t.Errorf("%s: %s, %v", bad, result.Raw, err)
		}
	}
}

// A listener keeps the progress that it is told.
type listener struct {
	mu   sync.Mutex
	told []int
}

func (l *listener) Notify(_ context.Context, _ string, params json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := strconv.Atoi(string(rawjson.Get(params, "progress")))
	l.told = append(l.told, n)
	return err
}

func (*listener) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("no")
}

// TestProgressIncreases makes calls side by side, and asks for an approval in between.
func TestProgressIncreases(t *testing.T) {
	s, heard := &stage{}, &listener{}
	h, ctx := openHost(t, s)
	h.run.Peer, h.run.Params = heard, json.RawMessage(`{"_meta":{"progressToken":"t"}}`)
	pending := h.Call(ctx, sandbox.ToolCall{Name: "x.once"})
	h.Flush(ctx, []string{pending.Pending}, plainBatch{})
	asked := s.approvals[0].Progress
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { h.notifyProgress(ctx, "call") })
	}
	calls.Wait()
	last := 0
	for _, n := range heard.told {
		if n <= last || n == asked {
			t.Fatalf("told %v; the approval had %d", heard.told, asked)
		}
		last = n
	}
	if len(heard.told) != 21 || asked != 2 {
		t.Errorf("told %v; the approval had %d", heard.told, asked)
	}
}

func TestACauseIsForThePersonOnly(t *testing.T) {
	cause := &fs.PathError{Op: "mkdir", Path: "/home/ada/.cache", Err: fs.ErrPermission}
	for kind, shown := range map[drawbridge.CallerKind]bool{drawbridge.Author: true, drawbridge.External: false, drawbridge.Agent: false} {
		text := runFault(t.Context(), drawbridge.Caller{Kind: kind}, cause).Error()
		if strings.Contains(text, "/home/ada") != shown {
			t.Errorf("%v is told %s", kind, text)
		}
	}
}

// TestDescribe has a tool with a learned output, one without, and one that the script may not call.
func TestDescribe(t *testing.T) {
	h, ctx := openHost(t, &stage{}, "x__once", "x__free")
	for name, want := range map[string]string{
		"x.once":  `{"name":"x__once","description":"","input_schema":null,"output_schema":{"type":"string"},"output_schema_learned_from":3}`,
		"x__free": `{"name":"x__free","description":"","input_schema":null}`,
		"x.twice": "",
	} {
		got, err := h.Describe(ctx, name)
		if diff := cmp.Diff(want, string(got)); diff != "" || (err != nil) != (want == "") {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
