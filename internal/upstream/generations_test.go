package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// overHTTP makes the fake's row one whose calls share sessions.
func overHTTP(row *config.Server) { row.URL, row.Type, row.Command = "http://fake.test/", "http", "" }

// asker is a stateless caller whom a server may ask everything.
func asker() drawbridge.Caller {
	c := caller(drawbridge.Modern)
	c.Capabilities = json.RawMessage(`{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}`)
	return c
}

// retry is the call again, with answers and the state of a result.
func retry(call drawbridge.Call, result drawbridge.Result, answers string) drawbridge.Call {
	call.Params = rawjson.Apply(call.Params,
		rawjson.Put(json.RawMessage(answers), "inputResponses"), rawjson.Put(rawjson.Get(result.Raw, "requestState"),
			"requestState"))
	return call
}

// asksBefore is a legacy tool that sends these requests, all at once, and says what it was answered.
func (r *rig) asksBefore(questions ...mcp.Message) {
	var mu sync.Mutex
	answers := map[string]mcp.Message{}
	var waiting mcp.Message
	r.fake.on("", func(c *fakeConn, m mcp.Message) string {
		mu.Lock()
		defer mu.Unlock()
		answers[string(m.ID)] = m
		if len(answers) < len(questions) {
			return ""
		}
		var said []string
		for _, q := range questions {
			said = append(said, string(answers[string(q.ID)].Result)+string(answers[string(q.ID)].Error))
		}
		c.say(mcp.Message{ID: waiting.ID, Result: json.RawMessage(`{"content":[` + strings.Join(said, ",") + `]}`)})
		return ""
	})
	r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
		mu.Lock()
		clear(answers)
		waiting = m
		mu.Unlock()
		for _, q := range questions {
			c.say(q)
		}
		return ""
	})
}

func elicits(id, params string) mcp.Message {
	return mcp.Message{ID: json.RawMessage(id), Method: mcp.MethodElicitation, Params: json.RawMessage(params)}
}

// stateless gives a result without its state, which is nobody's business.
func stateless(result drawbridge.Result) string {
	return string(rawjson.Apply(result.Raw, rawjson.Drop("requestState")))
}

func TestAStatelessCallerIsAskedByAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.asksBefore(elicits(`"q"`, `{"message":"who?"}`))
		call := echo(asker())
		asked := r.call(call)
		want := `{"resultType":"input_required","inputRequests":{"1":{"method":"elicitation/create","params":{"message":"who?","_meta":{"drawbridge/server":"fake"}}}}}`
		if got := stateless(asked); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		hello := r.fake.params(mcp.MethodInitialize)
		if got := rawjson.Get(hello[len(hello)-1], "capabilities"); string(got) != string(call.Caller.Capabilities) {
			t.Errorf("the server was told of %s", got)
		}
		answered := retry(call, asked, `{"1":{"action":"accept","content":{"n":1e2}}}`)
		if got := string(r.call(answered).Raw); got != `{"content":[{"action":"accept","content":{"n":1e2}}]}` {
			t.Error(got)
		}
		if f := r.fault(answered); f.Code != drawbridge.InvalidInput || !strings.Contains(f.Error(),
			"requestState: no call waits for it") {
			t.Errorf("a state that was used: %v", f)
		}
	})
}

func TestARequestOfAnExtensionThatBothEndsHaveReachesTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.on(mcp.MethodInitialize,
			always(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"extensions":{"com.example/x":{}}},"serverInfo":{"name":"fake","version":"1"}}`))
		r := newRig(t, f, Options{})
		r.asksBefore(mcp.Message{ID: []byte("7"), Method: "x/choose", Params: []byte(`{"n":1.0}`)})
		call := echo(asker())
		if got := string(r.call(call).Raw); !strings.Contains(got, "method not found") {
			t.Errorf("a caller without the extension: %s", got)
		}
		call.Caller.Capabilities = json.RawMessage(`{"extensions":{"com.example/x":{}}}`)
		asked := r.call(call)
		if got := stateless(asked); !strings.Contains(got, `{"1":{"method":"x/choose","params":{"n":1.0}}}`) {
			t.Errorf("the caller is asked %s", got)
		}
		if got := string(r.call(retry(call, asked,
			`{"1":{"chosen":1.0}}`)).Raw); got != `{"content":[{"chosen":1.0}]}` {
			t.Error(got)
		}
		c := talker("s")
		c.Capabilities = call.Caller.Capabilities
		own := echo(c)
		own.Peer = &peer{answer: func(method string) (json.RawMessage, error) {
			return json.RawMessage(`{"to":"` +
				method + `"}`), nil
		}}
		if got := string(r.call(own).Raw); got != `{"content":[{"to":"x/choose"}]}` {
			t.Error(got)
		}
	})
}

// TestAStatelessCallersRootsAreNotMadeUp has a server ask for roots between two calls of a caller who would name them
// in the course of one: it hears no list, and can ask again.
func TestAStatelessCallersRootsAreNotMadeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{Roots: []Root{{URI: "file:///ours"}}})
		answers := make(chan mcp.Message, 1)
		r.fake.on("", func(_ *fakeConn, m mcp.Message) string { answers <- m; return "" })
		r.call(echo(asker()))
		r.fake.last().say(mcp.Message{ID: json.RawMessage(`"late"`), Method: mcp.MethodRootsList})
		if m := <-answers; m.Result != nil || mcp.ErrorCode(m.Error) != mcp.CodeInternal {
			t.Errorf("the server heard %s %s", m.Result, m.Error)
		}
		for _, c := range r.fake.conns {
			if c != r.fake.last() {
				c.say(mcp.Message{ID: json.RawMessage(`"home"`), Method: mcp.MethodRootsList})
			}
		}
		if m := <-answers; string(m.Result) != `{"roots":[{"uri":"file:///ours"}]}` {
			t.Errorf("where nobody can be asked the server heard %s %s", m.Result, m.Error)
		}
	})
}

func TestAnErrorThatDemandsAPageBecomesAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		visited := false
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
			if visited {
				return `{"content":[]}`
			}
			c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeURLElicitation, "sign in",
				json.RawMessage(
					`{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.test","message":"go"}]}`))})
			return ""
		})
		if f := r.fault(echo(caller(drawbridge.Modern))); mcp.ErrorCode(f.Raw) != mcp.CodeMissingCapability ||
			string(rawjson.Get(f.Raw, "data")) != `{"requiredCapabilities":{"elicitation":{"url":{}}}}` {
			t.Errorf("a caller who declared nothing: %v, %s", f, f.Raw)
		}
		call := echo(asker())
		asked := r.call(call)
		want := `{"resultType":"input_required","inputRequests":{"1":{"method":"elicitation/create","params":` +
			`{"mode":"url","elicitationId":"e1","url":"https://a.test","message":"go","_meta":{"drawbridge/server":"fake","drawbridge/origin":"https://a.test"}}}}}`
		if got := stateless(asked); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if f := r.fault(retry(call, asked, `{"1":{"action":"decline"}}`)); f.Code != drawbridge.PolicyBlocked {
			t.Errorf("the user declined: %v", f)
		}
		asked = r.call(call)
		visited = true
		if got := string(r.call(retry(call, asked, `{"1":{"action":"accept"}}`)).Raw); got != `{"content":[]}` {
			t.Error(got)
		}
	})
}

func TestTwoQuestionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.asksBefore(elicits("7", `{"message":"a"}`), mcp.Message{ID: []byte("8"), Method: mcp.MethodRootsList})
		call := echo(asker())
		asked := r.call(call)
		open := func() string {
			var names []string
			for m := range rawjson.Members(rawjson.Get(asked.Raw, "inputRequests")) {
				names = append(names, string(m.Name)+" "+rawjson.GetString(m.Value, "method"))
			}
			return strings.Join(names, ", ")
		}
		synctest.Wait() // the second may come after the first was handed out
		asked = r.call(retry(call, asked, `{"elsewhere":{}}`))
		if got := open(); got != `"1" elicitation/create, "2" roots/list` &&
			got != `"1" roots/list, "2" elicitation/create` {
			t.Fatalf("without an answer these are asked: %s", got)
		}
		first := rawjson.GetString(asked.Raw, "inputRequests", "1", "method")
		asked = r.call(retry(call, asked, `{"1":{"roots":[],"action":"decline"}}`))
		if got := open(); strings.Contains(got, first) || !strings.HasPrefix(got, `"2" `) {
			t.Fatalf("with one answer these are asked: %s", got)
		}
		bad := retry(call, asked, `{"2":"yes"}`)
		if f := r.fault(bad); f.Code != drawbridge.InvalidInput || !strings.Contains(f.Error(),
			`the answer to "2" must be a JSON object`) {
			t.Error(f)
		}
		if got := string(r.call(retry(call, asked,
			`{"2":{"roots":[],"action":"decline"}}`)).Raw); got != `{"content":[{"roots":[],"action":"decline"},{"roots":[],"action":"decline"}]}` {
			t.Error(got)
		}
	})
}

func TestAStatelessCallerIsNotAskedWhatItDidNotDeclare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.asksBefore(elicits("7", `{"mode":"url","url":"https://a.test"}`), mcp.Message{ID: []byte("8"),
			Method: mcp.MethodSampling})
		call := echo(asker())
		call.Caller.Capabilities = []byte(`{"elicitation":{}}`)
		want := `{"content":[{"code":-32601,"message":"elicitation/create: the client did not declare elicitation"},` +
			`{"code":-32601,"message":"sampling/createMessage: the client did not declare sampling"}]}`
		if got := string(r.call(call).Raw); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestARetryIsAskedWhatItDeclares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.asksBefore(elicits("7", `{}`), mcp.Message{ID: []byte("8"), Method: mcp.MethodSampling})
		call := echo(asker())
		asked := r.call(call)
		synctest.Wait() // the second may come after the first was handed out
		again := retry(call, asked, `{}`)
		again.Caller.Capabilities = []byte(`{"elicitation":{}}`)
		asked = r.call(again)
		if got := stateless(asked); strings.Contains(got, "sampling") || !strings.Contains(got, "elicitation") {
			t.Errorf("a retry that declares elicitation alone is asked %s", got)
		}
		name := "1"
		if rawjson.Get(asked.Raw, "inputRequests", name) == nil {
			name = "2"
		}
		want := `{"content":[{"action":"accept"},{"code":-32601,"message":"sampling/createMessage: the client did not declare sampling"}]}`
		if got := string(r.call(retry(again, asked, `{"`+name+`":{"action":"accept"}}`)).Raw); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestAnErrorDemandsNoMoreThanIsDeclared(t *testing.T) {
	const page, form = `{"mode":"url","elicitationId":"e","url":"https://a.test","message":"go"}`,
		`{"mode":"form","message":"password?","requestedSchema":{}}`
	for name, tt := range map[string]struct{ demands, wantData, want string }{
		"a form beside a page": {page + "," + form, `{"requiredCapabilities":{"elicitation":{"url":{},"form":{}}}}`,
			""},
		"too many pages": {strings.Repeat(page+",", 16) + page, "",
			"the server demands more than 16 elicitations at once"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newFake(), Options{})
				r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
					c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeURLElicitation, "sign in",
						json.RawMessage(`{"elicitations":[`+tt.demands+`]}`))})
					return ""
				})
				c := caller(drawbridge.Modern)
				c.Capabilities = []byte(`{"elicitation":{"url":{}}}`)
				if f := r.fault(echo(c)); string(rawjson.Get(f.Raw, "data")) != tt.wantData ||
					!strings.Contains(f.Error(), tt.want) {
					t.Errorf("%v, %s", f, f.Raw)
				}
			})
		})
	}
}

func TestAStateIsForItsPrincipalAndServerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.asksBefore(elicits("7", `{}`))
		call := echo(asker())
		asked := r.call(call)
		theirs := retry(call, asked, `{"1":{"action":"accept"}}`)
		theirs.Caller.Principal = "somebody else"
		guessed := retry(call, drawbridge.Result{Raw: []byte(`{"requestState":"drawbridge/parked:ABC"}`)}, `{"1":{}}`)
		for _, bad := range []drawbridge.Call{theirs, guessed} {
			if f := r.fault(bad); f.Code != drawbridge.InvalidInput || !strings.Contains(f.Error(),
				"requestState: no call waits for it") {
				t.Error(f)
			}
		}
		r.call(retry(call, asked, `{"1":{"action":"accept"}}`))
	})
}

func TestWhatIsSaidMeanwhileReachesTheRequestThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		var conn *fakeConn
		var m mcp.Message
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, call mcp.Message) string {
			conn, m = c, call
			c.say(elicits("7", `{}`))
			return ""
		})
		first, second := &peer{}, &peer{}
		call := echo(asker())
		call.Peer = first
		call.Params = rawjson.Apply(call.Params, rawjson.Put([]byte(`"info"`), "_meta", mcp.MetaLogLevel))
		asked := r.call(call)
		conn.note(mcp.NoteMessage, `{"level":"info","data":"while parked"}`)
		conn.progress(m, 1)
		synctest.Wait()
		r.fake.on("", func(c *fakeConn, _ mcp.Message) string {
			c.note(mcp.NoteElicitComplete, `{"elicitationId":"x"}`)
			c.progress(m, 2)
			c.say(mcp.Message{ID: m.ID, Result: []byte(`{}`)})
			return ""
		})
		again := retry(call, asked, `{"1":{"action":"cancel"}}`)
		again.Peer = second
		again.Params = rawjson.Apply(again.Params, rawjson.Put([]byte(`"tok"`), "_meta", "progressToken"))
		r.call(again)
		want := []string{
			`notifications/message {"level":"info","data":"while parked"}`,
			`notifications/progress {"progressToken":"tok","progress":1}`,
			`notifications/progress {"progressToken":"tok","progress":2}`,
		}
		if diff := cmp.Diff(want, second.noted()); diff != "" {
			t.Error(diff)
		}
		if got := first.noted(); len(got) > 0 {
			t.Errorf("the first request, which has no token and is over, heard %q", got)
		}
	})
}

func TestHowAParkedCallEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(r *rig)
		want string // how the retry ends
		told int    // how often the server hears that the call is cancelled
	}{
		"its caller does not come back": {func(r *rig) { r.fake.on("", nil); r.later(2 * time.Minute) },
			"requestState: no call waits for it", 1},
		"its server dies": {func(r *rig) { r.fake.last().die() }, "connection lost before the answer", 0},
		"its server answers all the same": {func(r *rig) {
			r.fake.last().say(mcp.Message{ID: []byte("2"), Result: []byte(`{"late":true}`)})
		}, "", 0},
		"its server takes the question back": {func(r *rig) {
			r.fake.last().note(mcp.NoteCancelled, `{"requestId":7}`)
			synctest.Wait()
			r.fake.last().say(mcp.Message{ID: []byte("2"), Result: []byte(`{"late":true}`)})
		}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newFake(), Options{ParkTime: time.Minute})
				r.asksBefore(elicits("7", `{}`))
				call := echo(asker())
				asked := r.call(call)
				tt.end(r)
				synctest.Wait()
				result, err := r.Do(t.Context(), "fake", retry(call, asked, `{"1":{"action":"accept"}}`))
				switch {
				case tt.want == "" && (err != nil || string(result.Raw) != `{"late":true}`):
					t.Errorf("got %s, %v", result.Raw, err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("got %s, %v, want %q", result.Raw, err, tt.want)
				}
				synctest.Wait()
				if n := r.fake.count(mcp.NoteCancelled); n != tt.told {
					t.Errorf("the server was told %d times that the call is cancelled", n)
				}
				if n := r.pool.parkedCalls.Len(); n != 0 {
					t.Errorf("%d talks are still parked", n)
				}
			})
		})
	}
}

func TestACallerThatGoesAwayEndsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.fake.on(mcp.MethodToolsCall, always(""))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := r.Do(ctx, "fake", echo(asker()))
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if n := r.fake.count(mcp.NoteCancelled); n != 1 {
			t.Errorf("the server was told %d times", n)
		}
	})
}

func TestTheEndOfTheFleetEndsParkedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.pool.parkedCalls = interop.NewParkedCalls(time.Minute, 3)
		r.asksBefore(elicits("7", `{}`))
		for range 3 {
			if got := rawjson.GetString(r.call(echo(asker())).Raw, "resultType"); got != "input_required" {
				t.Fatal(got)
			}
		}
		over := string(r.call(echo(asker())).Raw)
		if want := "too many of its calls wait for answers already"; !strings.Contains(over, want) {
			t.Errorf("one more than there may be: %s", over)
		}
		other := echo(asker())
		other.Caller.Principal = "somebody else"
		if got := rawjson.GetString(r.call(other).Raw, "resultType"); got != "input_required" {
			t.Errorf("another principal's calls count too: %s", got)
		}
		r.end() // fails where something is left
	})
}

func TestOnAPipeASessionOfStatelessCallersHasOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{CallTimeout: 20 * time.Second})
		r.asksBefore(elicits("7", `{}`))
		call := echo(asker())
		var asked []drawbridge.Result
		for range 3 {
			asked = append(asked, r.call(call))
		}
		if n := r.fake.open(); n != 1+3 {
			t.Errorf("%d connections for the home and three parked calls", n)
		}
		r.call(retry(call, asked[0], `{"1":{}}`))
		asked[0] = r.call(call)
		if n := r.fake.open(); n != 1+3 {
			t.Errorf("%d connections after one was free", n)
		}
		for range maxExtraSessions - 3 {
			r.call(call)
		}
		began := time.Now()
		if f := r.fault(call); f.Code != drawbridge.Transient || !strings.Contains(f.Error(), errAllBusy.Error()) ||
			time.Since(began) != 20*time.Second {
			t.Errorf("%v after %v", f, time.Since(began))
		}
		waiting := make(chan error, 1)
		go func() {
			_, err := r.Do(t.Context(), "fake", call)
			waiting <- err
		}()
		synctest.Wait()
		r.call(retry(call, asked[1], `{"1":{}}`))
		if err := <-waiting; err != nil {
			t.Errorf("a call that waited for a lane: %v", err)
		}
		if n := r.fake.open(); n != 1+maxExtraSessions {
			t.Errorf("%d connections", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		for i := range 3 * maxExtraSessions {
			c := asker()
			c.Client = json.RawMessage(fmt.Sprintf(`{"name":"client %d"}`, i))
			r.call(echo(c))
		}
		synctest.Wait() // for those that made room
		if n := r.fake.open(); n != 1+maxExtraSessions {
			t.Errorf("%d connections for many kinds of client", n)
		}
		r.later(extraIdleTimeout + time.Second)
		if n := r.fake.open(); n != 1 {
			t.Errorf("%d connections when nobody called for long", n)
		}
	})
}

func TestOverHTTPThereAreMoreSessionsAndNoneIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{Elicitation: ElicitationRules{Capacity: 2 * maxExtraSessionsHTTP}}, overHTTP)
		r.asksBefore(elicits("7", `{}`))
		theirs := asker()
		theirs.Principal = "somebody else"
		for range maxExtraSessionsHTTP {
			for _, c := range []drawbridge.Caller{asker(), theirs} {
				if got := rawjson.GetString(r.call(echo(c)).Raw, "resultType"); got != "input_required" {
					t.Fatal(got)
				}
			}
		}
		if n := r.fake.open(); n != 1+2*maxExtraSessionsHTTP {
			t.Errorf("%d connections", n)
		}
	})
}

func TestLogLinesOfAStatelessCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		log := func(c *fakeConn, m mcp.Message) string {
			c.note(mcp.NoteMessage, fmt.Sprintf(`{"level":"info","data":%s}`, rawjson.Get(m.Params, "arguments")))
			return `{}`
		}
		r.fake.on(mcp.MethodToolsCall, log)
		levelled := func(name, level string) (drawbridge.Call, *peer) {
			p := &peer{}
			call := toolCall(caller(drawbridge.Modern), "echo", `"`+name+`"`)
			call.Peer = p
			call.Params = rawjson.Apply(call.Params, rawjson.Put(rawjson.Quote(level), "_meta", mcp.MetaLogLevel))
			return call, p
		}
		var work sync.WaitGroup
		for i := range 4 {
			name := fmt.Sprintf("call %d", i)
			call, p := levelled(name, []string{"info", "debug"}[i%2])
			work.Go(func() {
				r.call(call)
				if diff := cmp.Diff([]string{`notifications/message {"level":"info","data":"` + name + `"}`},
					p.noted()); diff != "" {
					t.Error(diff)
				}
			})
		}
		work.Wait()
		for _, p := range r.fake.params(mcp.MethodSetLevel) {
			if level := rawjson.GetString(p, "level"); level != "info" && level != "debug" {
				t.Errorf("the server was told %s", level)
			}
		}
	})
}

func TestAQuestionOutlivesACallThatItMayNotBelongTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{CallTimeout: 10 * time.Second})
		var asking mcp.Message
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
			if rawjson.GetString(m.Params, "arguments") == "asks" {
				asking = m
				return ""
			}
			c.say(elicits("7", `{}`)) // for the other call, while this one is in flight
			<-time.After(time.Second)
			return `{"quick":true}`
		})
		r.fake.on("", func(c *fakeConn, m mcp.Message) string {
			c.say(mcp.Message{ID: asking.ID, Result: append(append([]byte(`{"heard":`), m.Result...), '}')})
			return ""
		})
		p := &peer{answer: func(string) (json.RawMessage, error) {
			<-time.After(time.Minute) // longer than a call may take that asks nothing
			return json.RawMessage(`{"action":"accept"}`), nil
		}}
		call := func(arguments string) drawbridge.Call {
			c := toolCall(talker("s"), "echo", `"`+arguments+`"`)
			c.Peer = p
			return c
		}
		var work sync.WaitGroup
		work.Go(func() {
			if got := string(r.call(call("asks")).Raw); got != `{"heard":{"action":"accept"}}` {
				t.Error(got)
			}
		})
		synctest.Wait()
		r.call(call("quick"))
		work.Wait()
	})
}
