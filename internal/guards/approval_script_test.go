package guards

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// scriptRequest is the request of ada's script to make calls of fs__rm.
func scriptRequest(arguments ...string) deck.ScriptApproval {
	run := request(`{"code":"the script"}`)
	run.Spec = drawbridge.Spec{Name: "run_python"}
	s := deck.ScriptApproval{ApprovalRequest: run, Script: "the script", Input: json.RawMessage(`{"n":1}`)}
	for i, text := range arguments {
		one := request(text)
		one.Call.Caller.StartedBy, one.Call.Caller.Kind = one.Call.Caller.Kind, drawbridge.Sandbox
		s.Requests, s.Lines = append(s.Requests, one), append(s.Lines, 10+i)
	}
	return s
}

// effectsOf returns the effects that a person is shown.
func effectsOf(t *testing.T, a store.PendingApproval) []ScriptEffect {
	t.Helper()
	var shown ApprovalDetails
	if err := json.Unmarshal(a.Shown, &shown); err != nil {
		t.Fatal(err)
	}
	return shown.Effects
}

// grantCount answers a request for s, and grants so many calls of each of its tools.
func (w world) grantCount(t *testing.T, s deck.ScriptApproval, most int, lasts time.Duration) {
	t.Helper()
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, err := w.desk.ApproveScript(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
	a := w.waiting(t, 1)[0]
	var grants []store.Grant
	for _, e := range effectsOf(t, a) {
		text, err := json.Marshal(e.Pattern)
		if err != nil {
			t.Fatal(err)
		}
		grants = append(grants, store.Grant{Subject: e.Subject, Pattern: string(text), Max: most, Uses: len(e.Calls),
			Shown: a.Shown})
	}
	if err := w.person.AnswerPendingApproval(t.Context(), a.ID, store.AnswerAllowed, "bob, here", grants,
		lasts); err != nil {
		t.Fatal(err)
	}
	asking.Wait()
}

// isGranted reports whether a grant covers the one call of s.
func (w world) isGranted(t *testing.T, s deck.ScriptApproval) bool {
	t.Helper()
	answer, granted, err := w.desk.UseScriptGrant(t.Context(), s)
	if err != nil || granted != (answer.By == "bob, here" && answer.ID != "") {
		t.Errorf("%+v, %v, %v", answer, granted, err)
	}
	return granted
}

func TestAPersonIsShownTheEffectsOfAScript(t *testing.T) {
	w := newWorld(t)
	w.grantCount(t, scriptRequest(`{"path":"/a"}`), 5, time.Hour)
	s := scriptRequest(`{"path":"/a","token":"t1","n":1}`, `{"to":"x"}`, `{"n":2,"path":"/a","token":"t1"}`, `{"a":1,"a":2}`)
	for i, name := range map[int]string{1: "mail", 3: "twice"} {
		s.Requests[i].Spec = drawbridge.Spec{Name: drawbridge.CardName(name), Tool: name}
	}
	s.Allowed = map[drawbridge.CardName]int{"fs__rm": 4}
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() { _, _ = w.desk.ApproveScript(ctx, s) })
	got := effectsOf(t, w.waiting(t, 1)[0])
	cancel()
	asking.Wait()
	want := []ScriptEffect{
		{Card: "fs__rm", Server: "fs", Tool: "rm", Constant: json.RawMessage(`{"path":"/a","token":"[redacted, 4 bytes]"}`),
			Calls:   []ScriptCall{{1, 10, json.RawMessage(`{"n":1}`)}, {3, 12, json.RawMessage(`{"n":2}`)}},
			Earlier: 4, Grants: []GrantUses{{Uses: 1, Max: 5}}, Pattern: &ArgumentPattern{Varying: []string{"n"}}},
		{Card: "mail", Tool: "mail", Constant: json.RawMessage(`{"to":"x"}`),
			Calls: []ScriptCall{{2, 11, json.RawMessage(`{}`)}}, Pattern: &ArgumentPattern{}},
		{Card: "twice", Tool: "twice", Calls: []ScriptCall{{4, 13, json.RawMessage(`{"a":1,"a":2}`)}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(ScriptEffect{}), cmpopts.IgnoreFields(ScriptEffect{},
		"Definition", "Subject"), cmpopts.IgnoreFields(ArgumentPattern{}, "Constant"),
		cmpopts.IgnoreFields(GrantUses{}, "ID")); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if names := len(got[0].Pattern.Constant); names != 2 || len(got[0].Definition) != 64 || len(got[0].Subject) != 64 {
		t.Errorf("%+v", got[0])
	}
}

// TestWhatACountIsFor grants calls of one script, and makes calls that differ in one thing.
func TestWhatACountIsFor(t *testing.T) {
	w := newWorld(t)
	w.grantCount(t, scriptRequest(`{"path":"/a","n":1}`, `{"path":"/a","n":2}`), 100, time.Hour)
	for _, tt := range []struct {
		name   string
		change func(s *deck.ScriptApproval, r *deck.ApprovalRequest)
		want   bool
	}{
		{"another value of n", func(*deck.ScriptApproval, *deck.ApprovalRequest) {}, true},
		{"another session", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) { s.Call.Caller.Session = "two" }, true},
		{"another byte of the script", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) { s.Script += " " }, false},
		{"another input", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) { s.Input = json.RawMessage(`{"n":2}`) },
			false},
		{"no input", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) { s.Input = nil }, false},
		{"another principal", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) { s.Call.Caller.Principal = "bob" }, false},
		{"another kind of caller", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) {
			s.Call.Caller.Kind = drawbridge.Agent
		}, false},
		{"another definition", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) {
			r.Spec.Definition = json.RawMessage(`{"name":"fs__rm","description":"x"}`)
		}, false},
		{"another tool", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) { r.Spec.Tool = "rmdir" }, false},
		{"another name", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) { r.Spec.Name = "fs__rmdir" }, false},
		{"another server", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) { r.Spec.Server = "db" }, false},
		{"another row", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) { r.ConfigHash = "edited" }, false},
		{"another project's", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) { r.Origin = "/elsewhere/.mcp.json" },
			false},
		{"another method", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) { r.Call.Method = "prompts/get" }, false},
		{"a constant that differs", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) {
			r.Call.Params = json.RawMessage(`{"arguments":{"path":"/b","n":1}}`)
		}, false},
		{"answers beside the arguments", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) {
			r.Call.Params = json.RawMessage(`{"arguments":{"path":"/a","n":1},"inputResponses":{}}`)
		}, false},
		{"more than a person reads", func(_ *deck.ScriptApproval, r *deck.ApprovalRequest) {
			r.Call.Params = json.RawMessage(`{"arguments":{"path":"/a","n":"` + strings.Repeat("x", maxApprovalArguments) + `"}}`)
		}, false},
		{"a tool that changed meanwhile", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) {
			s.StillValid = func() bool { return false }
		}, false},
		{"two calls at once", func(s *deck.ScriptApproval, _ *deck.ApprovalRequest) {
			s.Requests = append(s.Requests, s.Requests...)
		}, false},
	} {
		s := scriptRequest(`{"path":"/a","n":3}`)
		tt.change(&s, &s.Requests[0])
		if got := w.isGranted(t, s); got != tt.want {
			t.Errorf("%s: granted %v", tt.name, got)
		}
	}
	grants, err := w.person.Grants(t.Context())
	if err != nil || len(grants) != 1 || grants[0].Uses != 4 {
		t.Errorf("%+v, %v; want 4 uses: two calls waited, and two were granted", grants, err)
	}
	// A count is not an approval of the single call, nor of the same calls again.
	for _, a := range []store.PendingApproval{{Principal: "ada", Call: grants[0].Subject, Card: grants[0].Subject}} {
		if _, used, err := w.desk.DB.UseGrant(t.Context(), a); used || err != nil {
			t.Errorf("used as another grant: %v", err)
		}
	}
}

func TestACountEnds(t *testing.T) {
	w := newWorld(t)
	next := scriptRequest(`{"n":9}`)
	w.grantCount(t, scriptRequest(`{"n":1}`, `{"n":2}`), 4, time.Hour)
	for i, want := range []bool{true, true, false, false} {
		if got := w.isGranted(t, next); got != want {
			t.Errorf("call %d: granted %v", 3+i, got)
		}
	}
	// Another answer adds another grant, which is used after the first.
	w.grantCount(t, scriptRequest(`{"n":3}`, `{"n":4}`), 3, time.Hour)
	if !w.isGranted(t, next) || w.isGranted(t, next) {
		t.Error("the second grant is not for one call")
	}
	w.grantCount(t, scriptRequest(`{"n":5}`, `{"n":6}`), 9, -time.Millisecond)
	if w.isGranted(t, next) {
		t.Error("granted after its end")
	}
	w.grantCount(t, scriptRequest(`{"n":7}`, `{"n":8}`), 9, time.Hour)
	grants, err := w.person.Grants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if revoked, err := w.person.RevokeGrant(t.Context(), grants[len(grants)-1].ID); !revoked || err != nil {
		t.Errorf("%v, %v", revoked, err)
	}
	if w.isGranted(t, next) {
		t.Error("granted after it was revoked")
	}
}

// TestNeverMoreThanTheCount has several processes that make random calls, of which a grant covers some.
func TestNeverMoreThanTheCount(t *testing.T) {
	const most, processes = 25, 3
	path := filepath.Join(t.TempDir(), "store.db")
	first := world{desk: &ApprovalQueue{DB: open(t, path), Logger: slog.New(slog.DiscardHandler),
		pollInterval: time.Millisecond}, person: open(t, path)}
	first.grantCount(t, scriptRequest(`{"o":"x","n":1}`, `{"o":"x","n":2}`), most, time.Hour)
	var allowed atomic.Int32
	var group sync.WaitGroup
	for i := range processes {
		desk := &ApprovalQueue{DB: open(t, path), Logger: slog.New(slog.DiscardHandler)} // it reads what the first stored
		random := rand.New(rand.NewPCG(uint64(i), 1))
		group.Go(func() {
			for range most {
				for owner, covered := range map[string]bool{"x": true, "y": false} {
					call := scriptRequest(fmt.Sprintf(`{"n":%d,"o":%q}`, random.IntN(100), owner))
					call.StillValid = func() bool { return true }
					_, granted, err := desk.UseScriptGrant(t.Context(), call)
					if err != nil || granted && !covered {
						t.Errorf("a call of %s: granted %v, %v", owner, granted, err)
					}
					if granted {
						allowed.Add(1)
					}
				}
			}
		})
	}
	group.Wait()
	if n := allowed.Load(); n != most-2 {
		t.Errorf("%d calls were granted, want %d", n, most-2)
	}
}

func TestGrantsThatCannotBeReadCoverNothing(t *testing.T) {
	w := newWorld(t)
	s := scriptRequest(`{"n":1}`, `{"n":2}`)
	for _, pattern := range []string{"", "{", "[]", `"x"`, `{"varying":1}`} {
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := w.desk.ApproveScript(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
		a := w.waiting(t, 1)[0]
		w.answer(t, a.ID, store.AnswerAllowed, &store.Grant{Subject: effectsOf(t, a)[0].Subject, Pattern: pattern, Max: 9,
			Shown: a.Shown}, time.Hour)
		asking.Wait()
		if w.isGranted(t, scriptRequest(`{"n":3}`)) {
			t.Errorf("the pattern %q covers a call", pattern)
		}
	}
	w.desk.DB.Close()
	for name, use := range map[string]func() error{
		"use a grant": func() error {
			_, granted, err := w.desk.UseScriptGrant(t.Context(), scriptRequest(`{"n":3}`))
			if granted {
				t.Error("granted without a store")
			}
			return err
		},
		"ask": func() error {
			_, err := w.desk.ApproveScript(t.Context(), s)
			return err
		},
	} {
		if err := use(); codeOf(err) != drawbridge.PolicyBlocked || !strings.Contains(err.Error(), "the store does not answer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheEffectsAreWholeCalls puts the arguments of each shown call together again: nothing is left out.
func TestTheEffectsAreWholeCalls(t *testing.T) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for range 500 {
		var calls []string
		for range 1 + random.IntN(4) {
			calls = append(calls, encodeArguments(random, randomArguments(random)))
		}
		q, err := newScriptQuestion(scriptRequest(calls...))
		if err != nil {
			t.Fatal(err)
		}
		e := q.effects[0]
		for i, c := range e.Calls {
			shown := map[string]string{}
			for _, part := range []json.RawMessage{e.Constant, c.Arguments} {
				for m := range rawjson.Members(part) {
					shown[string(m.Name)] += string(m.Value)
				}
			}
			want := map[string]string{}
			for m := range rawjson.Members(json.RawMessage(calls[i])) {
				want[string(m.Name)] = string(m.Value)
			}
			if diff := cmp.Diff(want, shown); diff != "" || c.Number != i+1 {
				t.Fatalf("%v, call %d (-want +got):\n%s", calls, c.Number, diff)
			}
		}
	}
}
