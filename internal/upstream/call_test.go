package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
	"github.com/google/go-cmp/cmp"
)

func TestASilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: -1}, func(row *config.Server) { row.Timeout = 20 * time.Second })
		r.fake.on(mcp.MethodToolsCall, always(""))
		began := time.Now()
		f := r.fault(echo(caller(drawbridge.Legacy)))
		want := "call echo on fake: timeout: no answer and no progress within 20s (timeout of server \"fake\") (it may have taken effect: check before repeating it)"
		if took := time.Since(began); took != 20*time.Second || f.Error() != want ||
			f.Code != drawbridge.Transient || !f.Ambiguous {
			t.Errorf("after %v: %v, %+v", took, f, f)
		}
		synctest.Wait()
		if n := r.fake.count(mcp.NoteCancelled); n != 1 {
			t.Errorf("the server was told %d times", n)
		}
	})
}

// TestAServerThatStandsStillIsWoken has a server that answers a call only when it reads another line, as programs made
// with Go 1.26 do once in a long while: it gets that line, in the words of its generation, and the call is made once.
func TestAServerThatStandsStillIsWoken(t *testing.T) {
	for _, tt := range []struct {
		fake func() *fake
		wake string
	}{
		{newFake, mcp.MethodPing},
		{func() *fake { return newModernFake(`"2026-07-28"`) }, mcp.MethodDiscover},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, tt.fake(), Options{IdleStop: -1})
			var held mcp.Message
			r.fake.on(mcp.MethodToolsCall, func(_ *fakeConn, m mcp.Message) string { held = m; return "" })
			greeting := r.fake.answers[tt.wake]
			r.fake.on(tt.wake, func(c *fakeConn, m mcp.Message) string {
				if held.ID != nil {
					c.say(mcp.Message{ID: held.ID, Result: json.RawMessage(`{"content":[]}`)})
				}
				if greeting == nil {
					return `{}`
				}
				return greeting(c, m)
			})
			began := time.Now()
			if _, err := r.Do(t.Context(), "fake", echo(caller(drawbridge.Legacy))); err != nil ||
				time.Since(began) != 5*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			if n := r.fake.count(mcp.MethodToolsCall); n != 1 {
				t.Errorf("the call was made %d times", n)
			}
		})
	}
}

func TestProgressGivesMoreTimeButNotForEver(t *testing.T) {
	for _, tt := range []struct {
		steps int
		want  string
	}{
		{5, ""},
		{1000, "call echo on fake: timeout: not finished after 10m0s, with all its progress (10 times [mcp] call_timeout)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newFake(), Options{IdleStop: -1})
			r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
				for i := range tt.steps {
					select {
					case <-time.After(50 * time.Second):
						c.progress(m, i)
					case <-c.done:
					}
				}
				return `{"content":[]}`
			})
			p := &peer{}
			call := echo(caller(drawbridge.Legacy))
			call.Peer, call.Params = p, json.RawMessage(`{"name":"echo","_meta":{"progressToken": "1.0" }}`)
			_, err := r.Do(t.Context(), "fake", call)
			if tt.want == "" {
				want := []string{}
				for i := range tt.steps {
					want = append(want, fmt.Sprintf(`notifications/progress {"progressToken":"1.0","progress":%d}`, i))
				}
				if diff := cmp.Diff(want, p.noted()); err != nil || diff != "" {
					t.Errorf("%v\n%s", err, diff)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestProgressIsNotForCallersWhoDidNotAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
			c.progress(m, 1)
			c.note(mcp.NoteMessage, `{"level":"info","data":1e400}`)
			return `{"content":[]}`
		})
		p := &peer{}
		call := echo(caller(drawbridge.Legacy))
		call.Peer = p
		r.call(call)
		if diff := cmp.Diff([]string{`notifications/message {"level":"info","data":1e400}`}, p.noted()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestASlowCallerHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
			c.note(mcp.NoteMessage, `{"data":"for the only call"}`)
			return `{"content":[]}`
		})
		slow := &peer{hold: make(chan struct{})}
		call := echo(caller(drawbridge.Legacy))
		call.Peer = slow
		done := make(chan error, 1)
		go func() {
			_, err := r.Do(t.Context(), "fake", call)
			done <- err
		}()
		synctest.Wait()
		r.call(echo(caller(drawbridge.Legacy)))
		close(slow.hold)
		if err := <-done; err != nil || len(slow.noted()) != 1 {
			t.Errorf("%v; a result overtook what was said before it: %q", err, slow.noted())
		}
	})
}

func TestServersAskTheCallerOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{Roots: []Root{{URI: "file:///home/me"}}, IdleStop: -1})
		answers := make(chan mcp.Message, 10)
		r.fake.on("", func(_ *fakeConn, m mcp.Message) string { answers <- m; return "" })
		ask := func(method string) func(c *fakeConn, m mcp.Message) string {
			return func(c *fakeConn, m mcp.Message) string {
				c.say(mcp.Message{ID: []byte("7"), Method: method, Params: []byte(`{"n":1.0}`)})
				go func() { // the server answers the call when it has its answer
					answers <- <-answers
					c.say(mcp.Message{ID: m.ID, Result: []byte(`{"content":[]}`)})
				}()
				return ""
			}
		}
		p := &peer{answer: func(string) (json.RawMessage, error) {
			<-time.After(5 * time.Minute) // a person thinks; the call's time stands still
			return json.RawMessage(`{"action":"accept","content":{"n":1e2}}`), nil
		}}
		rooted := talker("two")
		rooted.Capabilities = json.RawMessage(`{"roots":{}}`)
		for _, tt := range []struct {
			name, method string
			caller       drawbridge.Caller
			want         string
		}{
			{"who declared it", mcp.MethodElicitation, talker("one"), `{"action":"accept","content":{"n":1e2}}`},
			{"who declared something else", mcp.MethodSampling, talker("one"), `the client did not declare sampling`},
			{"who declared nothing", mcp.MethodElicitation, caller(drawbridge.Legacy),
				`the client did not declare elicitation`},
			{"for roots that are ours to tell", mcp.MethodRootsList, caller(drawbridge.Legacy),
				`{"roots":[{"uri":"file:///home/me"}]}`},
			{"for roots, who has none", mcp.MethodRootsList, talker("one"), `{"roots":[{"uri":"file:///home/me"}]}`},
			{"for roots, who has some", mcp.MethodRootsList, rooted, `{"action":"accept","content":{"n":1e2}}`},
			{"for what nobody has heard of", "x/y", talker("one"), `method not found`},
		} {
			r.fake.on(mcp.MethodToolsCall, ask(tt.method))
			call := echo(tt.caller)
			call.Peer = p
			r.call(call)
			if m := <-answers; !strings.Contains(string(m.Result)+string(m.Error), tt.want) {
				t.Errorf("%s: got %s%s", tt.name, m.Result, m.Error)
			}
		}
		want := []string{`elicitation/create {"n":1.0,"_meta":{"drawbridge/server":"fake"}}`, `roots/list {"n":1.0}`}
		if diff := cmp.Diff(want, p.questions()); diff != "" {
			t.Error(diff)
		}
		p.answer = func(string) (json.RawMessage, error) {
			return nil, &drawbridge.Fault{Raw: json.RawMessage(`{"code":-1,"message":"no", "data":1e2}`)}
		}
		r.fake.on(mcp.MethodToolsCall, ask(mcp.MethodElicitation))
		call := echo(talker("one"))
		call.Peer = p
		r.call(call)
		if m := <-answers; string(m.Error) != `{"code":-1,"message":"no", "data":1e2}` {
			t.Errorf("a caller's refusal arrived as %s", m.Error)
		}
	})
}

// TestServersAreToldOfRootsWhereThereAreSome has what a server hears at the greeting of a session that is a caller's
// own: roots that the caller has, or the settings; and what it hears when it asks for them where nobody has any.
func TestServersAreToldOfRootsWhereThereAreSome(t *testing.T) {
	for _, tt := range []struct {
		name, caller string
		roots        []Root
		want, answer string
	}{
		{"the settings", `{"elicitation":{}}`, []Root{{URI: "file:///ours"}}, `{"elicitation":{},"roots":{}}`,
			`{"roots":[{"uri":"file:///ours"}]}`},
		{"the settings with a name", `{"elicitation":{}}`, []Root{{URI: "file:///ours", Name: "a \"b\""}},
			`{"elicitation":{},"roots":{}}`, `{"roots":[{"uri":"file:///ours","name":"a \"b\""}]}`},
		{"the caller", `{"roots":{"listChanged":true}}`, []Root{{URI: "file:///ours"}},
			`{"roots":{"listChanged":true}}`, `{"roots":[{"uri":"file:///theirs"}]}`},
		{"nobody", `{"elicitation":{}}`, nil, `{"elicitation":{}}`, `the client did not declare roots`},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newFake(), Options{Roots: tt.roots, IdleStop: -1})
			answers, heard := make(chan mcp.Message, 1), ""
			r.fake.on("", func(_ *fakeConn, m mcp.Message) string { answers <- m; return "" })
			greets := r.fake.answers[mcp.MethodInitialize]
			r.fake.on(mcp.MethodInitialize, func(c *fakeConn, m mcp.Message) string {
				heard = string(rawjson.Get(m.Params, "capabilities"))
				return greets(c, m)
			})
			r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
				c.say(mcp.Message{ID: []byte("7"), Method: mcp.MethodRootsList})
				go func() {
					answers <- <-answers
					c.say(mcp.Message{ID: m.ID, Result: []byte(`{"content":[]}`)})
				}()
				return ""
			})
			call := echo(talker("one"))
			call.Caller.Capabilities = json.RawMessage(tt.caller)
			call.Peer = &peer{answer: func(string) (json.RawMessage, error) {
				return json.RawMessage(`{"roots":[{"uri":"file:///theirs"}]}`), nil
			}}
			r.call(call)
			if m := <-answers; heard != tt.want || !strings.Contains(string(m.Result)+string(m.Error), tt.answer) {
				t.Errorf("%s: the server heard %s, and then %s%s; want %s, %s", tt.name, heard, m.Result, m.Error,
					tt.want, tt.answer)
			}
		})
	}
}

func TestWhatAServerAsksWhileItsSessionOpensGoesToTheOpener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		answers := make(chan mcp.Message, 1)
		r.fake.on("", func(_ *fakeConn, m mcp.Message) string { answers <- m; return "" })
		r.fake.on(mcp.NoteInitialized, func(c *fakeConn, _ mcp.Message) string {
			c.say(mcp.Message{ID: []byte(`"roots"`), Method: mcp.MethodRootsList})
			return ""
		})
		c := talker("one")
		c.Capabilities = []byte(`{"roots":{"listChanged":true}}`)
		p := &peer{answer: func(string) (json.RawMessage, error) { return json.RawMessage(`{"roots":[]}`), nil }}
		call := echo(c)
		call.Peer = p
		r.call(call)
		if m := <-answers; string(m.Result) != `{"roots":[]}` || len(p.questions()) != 1 {
			t.Errorf("got %s %s", m.Result, m.Error)
		}
	})
}

func TestWhatIsSaidOutsideCallsIsANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notices := make(chan drawbridge.ServerNotification, 10)
		r := newRig(t, newFake(),
			Options{FleetOptions: FleetOptions{OnNotification: func(n drawbridge.ServerNotification) { notices <- n }}})
		r.fake.last().note(mcp.NoteResourceUpdated, `{"uri":"a:b"}`)
		synctest.Wait()
		r.call(echo(talker("one")))
		r.fake.last().note(mcp.NoteMessage, `{"data":1}`)
		synctest.Wait()
		stranger := caller(drawbridge.Legacy)
		stranger.Principal = "somebody else"
		r.call(echo(stranger))
		r.fake.last().note(mcp.NoteMessage, `{"data":"private"}`)
		synctest.Wait()
		want := []drawbridge.ServerNotification{
			{Server: "fake", Principal: owner, Method: mcp.NoteResourceUpdated, Params: []byte(`{"uri":"a:b"}`)},
			{Server: "fake", Principal: owner, Session: "one", Method: mcp.NoteMessage, Params: []byte(`{"data":1}`)},
		}
		close(notices)
		var got []drawbridge.ServerNotification
		for n := range notices {
			got = append(got, n)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatIsRepeatedAndWhatIsNot(t *testing.T) {
	const tools = `{"tools":[{"name":"read","annotations":{"readOnlyHint":true}},{"name":"put","annotations":{"idempotentHint":true}},` +
		`{"name":"pay","annotations":{"readOnlyHint":false}},{"name":"plain"}]}`
	for _, tt := range []struct {
		method, params string
		repeated       bool
	}{
		{mcp.MethodToolsCall, `{"name":"read"}`, true},
		{mcp.MethodToolsCall, `{"name":"put"}`, true},
		{mcp.MethodToolsCall, `{"name":"pay"}`, false},
		{mcp.MethodToolsCall, `{"name":"plain"}`, false},
		{mcp.MethodToolsCall, `{"name":"unlisted"}`, false},
		{mcp.MethodResourcesRead, `{"uri":"a:b"}`, true},
		{mcp.MethodPromptsGet, `{"name":"p"}`, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newFake(), Options{IdleStop: -1})
			r.fake.on(mcp.MethodToolsList, always(tools))
			r.fake.last().note(mcp.NoteToolsChanged, "{}")
			synctest.Wait()
			tries := 0
			r.fake.on(tt.method, func(c *fakeConn, _ mcp.Message) string {
				if tries++; tries == 1 {
					c.die()
					return ""
				}
				return `{"ok":true}`
			})
			call := drawbridge.Call{Caller: caller(drawbridge.Legacy), Method: tt.method,
				Params: json.RawMessage(tt.params)}
			if tt.repeated {
				r.call(call)
				return
			}
			if f := r.fault(call); !f.Ambiguous || f.Code != drawbridge.Transient ||
				!errors.Is(f, transport.ErrLost) || tries != 1 {
				t.Errorf("%s: %v, %+v after %d tries", tt.params, f, f, tries)
			}
		})
	}
}

func TestAServerThatAlwaysDiesIsNotAskedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.fake.on(mcp.MethodResourcesRead, func(c *fakeConn, _ mcp.Message) string { c.die(); return "" })
		f := r.fault(drawbridge.Call{Caller: caller(drawbridge.Legacy), Method: mcp.MethodResourcesRead,
			Params: []byte(`{"uri":"a:b"}`)})
		if n := r.fake.count(mcp.MethodResourcesRead); n != 3 || !f.Ambiguous {
			t.Errorf("%v after %d tries", f, n)
		}
	})
}

func TestAnErrorOfTheServerIsPassedOnAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		const object = `{"code":-32602, "message":"no such tool","data":{"n":12345678901234567890}}`
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
			c.say(mcp.Message{ID: m.ID, Error: []byte(object)})
			return ""
		})
		f := r.fault(echo(caller(drawbridge.Legacy)))
		if string(f.Raw) != object || f.Code != drawbridge.InvalidInput || f.Ambiguous {
			t.Errorf("%s, %+v", f.Raw, f)
		}
	})
}

func TestACallerWhoLeavesIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.fake.on(mcp.MethodToolsCall, always(""))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled := make(chan error, 1)
		go func() {
			_, err := r.Do(ctx, "fake", echo(caller(drawbridge.Legacy)))
			cancelled <- err
		}()
		synctest.Wait()
		cancel(drawbridge.NewCancellation("too \"slow\""))
		if err := <-cancelled; !errors.Is(err, context.Canceled) || !drawbridge.AsFault(err).Ambiguous {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		told := r.fake.params(mcp.NoteCancelled)
		if len(told) != 1 || rawjson.GetString(told[0], "reason") != `too "slow"` {
			t.Errorf("the server was told %s", told)
		}
	})
}

func TestLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		set := func(session, level string) {
			t.Helper()
			if err := r.SetLogLevel(t.Context(), session, level); err != nil {
				t.Fatal(err)
			}
		}
		set("", "error")
		r.call(echo(talker("one")))
		set("one", "debug")
		set("two", "alert")
		r.call(echo(talker("two")))
		r.EndSession("one")
		synctest.Wait()
		set("", "emergency")
		var got []string
		for _, p := range r.fake.params(mcp.MethodSetLevel) {
			got = append(got, rawjson.GetString(p, "level"))
		}
		// The home; then, at once, the home and the session of one; the session of two; the home, twice quieter.
		if want := "error debug debug alert error alert"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := r.SetLogLevel(t.Context(), "", "loud"); err == nil {
			t.Error("there is no such level")
		}
	})
}

// A stubborn connection does not take calls, and says why.
type stubborn struct {
	transport.Conn
	err error
}

func (c *stubborn) Call(ctx context.Context, method string, params json.RawMessage, in transport.Handler) (
	mcp.Message, error) {
	if method == mcp.MethodToolsCall && c.err != nil {
		return mcp.Message{}, c.err
	}
	return c.Conn.Call(ctx, method, params, in)
}

func TestACallThatDidNotArriveIsSentOnceMore(t *testing.T) {
	for _, why := range []error{transport.ErrClosed, transport.ErrSessionExpired} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newFake(), Options{OnDemand: true})
			refusals := 1
			r.pool.dial = func(ctx context.Context, s *session, sse bool) error {
				err := r.fake.dial(ctx, s, sse)
				if len(r.fake.dialled()) <= refusals {
					s.conn = &stubborn{s.conn, why}
				}
				return err
			}
			r.call(echo(caller(drawbridge.Legacy))) // the tool is one that must not be called twice
			if dials, sent := len(r.fake.dialled()), r.fake.count(mcp.MethodToolsCall); dials != 2 || sent != 1 ||
				r.fake.open() != 1 {
				t.Errorf("%d dials, %d calls, %d connections", dials, sent, r.fake.open())
			}
			refusals = 100
			r.fake.last().die()
			synctest.Wait()
			f := r.fault(echo(caller(drawbridge.Legacy)))
			if f.Code != drawbridge.Transient || f.Ambiguous || len(r.fake.dialled()) != 4 ||
				!strings.HasPrefix(f.Error(), "call echo on fake: server fake is unavailable: ") {
				t.Errorf("%v, %+v after %d dials", f, f, len(r.fake.dialled()))
			}
		})
	}
}

// TestACallDuringAReconnect: a call that runs ends at once with an error that does not hide that it may have taken
// effect, and later calls go to the new connection.
func TestACallDuringAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: -1})
		r.fake.on(mcp.MethodToolsCall, always(""))
		began := time.Now()
		ended := make(chan *drawbridge.Fault, 1)
		go func() { ended <- r.fault(echo(caller(drawbridge.Legacy))) }()
		r.later(time.Second)
		r.fake.on(mcp.MethodToolsCall, always(`{"content":[]}`))
		if err := r.Reconnect(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		if f := <-ended; !f.Ambiguous || f.Code != drawbridge.Transient ||
			!strings.Contains(f.Error(), errReconnected.Error()) || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v, %+v", time.Since(began), f, f)
		}
		r.call(echo(caller(drawbridge.Legacy)))
		if n := len(r.fake.dialled()); n != 2 {
			t.Errorf("connected %d times, want 2", n)
		}
	})
}
