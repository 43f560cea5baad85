package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestKindsOfClientTakeNoMoreRoomThanThereIs has clients that differ in an extension's settings alone call all at
// once, and stay. Each kind has a session, and of those there are only so many.
func TestKindsOfClientTakeNoMoreRoomThanThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{CallTimeout: time.Minute})
		release := make(chan struct{})
		r.fake.on(mcp.MethodToolsCall, func(*fakeConn, mcp.Message) string {
			<-release
			return `{}`
		})
		const many = 5 * maxExtraSessions
		var work sync.WaitGroup
		for i := range many {
			c := caller(drawbridge.Modern)
			c.Capabilities = json.RawMessage(fmt.Sprintf(`{"extensions":{"io.modelcontextprotocol/ui":{"n":%d}}}`, i))
			work.Go(func() { r.call(echo(c)) })
		}
		synctest.Wait()
		if n := r.fake.open(); n != 1+maxExtraSessions {
			t.Errorf("%d connections are open for %d kinds of client", n, many)
		}
		close(release)
		work.Wait() // those that waited have had their turn
		synctest.Wait()
		if n := r.fake.open(); n > 1+maxExtraSessions {
			t.Errorf("%d connections are open afterwards", n)
		}
	})
}

// TestTheSameKindOfClient however it writes what it says of itself.
func TestTheSameKindOfClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		for _, said := range []string{`{"roots":{},"sampling":{"tools":{}}}`,
			`{ "sampling" : {"tools":{}}, "roots":{ } }`} {
			c := caller(drawbridge.Modern)
			c.Capabilities = json.RawMessage(said)
			r.call(echo(c))
		}
		if n := r.fake.open(); n != 1+1 {
			t.Errorf("%d connections", n)
		}
	})
}

func TestNoPrincipalIsInAnothersWay(t *testing.T) {
	evil := asker()
	evil.Principal = "evil"
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.asksBefore(elicits("7", `{}`))
		mine := r.call(echo(asker()))
		for range maxExtraSessions {
			r.call(echo(evil))
		}
		before := len(r.fake.dialled())
		r.call(retry(echo(asker()), mine, `{"1":{}}`))
		if got := rawjson.GetString(r.call(echo(asker())).Raw, "resultType"); got != "input_required" {
			t.Errorf("while another has every lane of its own parked: %s", got)
		}
		if n := len(r.fake.dialled()); n != before {
			t.Errorf("a session of one principal made room for another's")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		honest := r.fake.answers[mcp.MethodInitialize]
		r.fake.on(mcp.MethodInitialize, func(c *fakeConn, m mcp.Message) string {
			if rawjson.Get(m.Params, "capabilities", "sampling", "bad") != nil {
				c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(-32602, "not with such a client", nil)})
				return ""
			}
			return honest(c, m)
		})
		evil.Capabilities = json.RawMessage(`{"sampling":{"bad":1}}`)
		if f := r.fault(echo(evil)); !strings.Contains(f.Error(), "not with such a client") {
			t.Error(f)
		}
		r.call(echo(asker()))
	})
}

// TestTheWaitForALaneHasOneEnd: each time that a lane is free somebody else takes it, and the wait goes on as if it
// had not been.
func TestTheWaitForALaneHasOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{CallTimeout: 10 * time.Second})
		var mu sync.Mutex
		asking := map[*fakeConn]json.RawMessage{}
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
			mu.Lock()
			defer mu.Unlock()
			asking[c] = m.ID
			c.say(elicits("7", `{}`))
			return ""
		})
		r.fake.on("", func(c *fakeConn, _ mcp.Message) string {
			mu.Lock()
			defer mu.Unlock()
			c.say(mcp.Message{ID: asking[c], Result: json.RawMessage(`{}`)})
			return ""
		})
		call := echo(asker())
		var parked []drawbridge.Result
		for range maxExtraSessions {
			parked = append(parked, r.call(call))
		}
		began := time.Now()
		waited := make(chan time.Duration, 2*maxExtraSessions)
		var work sync.WaitGroup
		for range 2 * maxExtraSessions {
			work.Go(func() {
				if _, err := r.Do(t.Context(), "fake", call); err != nil {
					waited <- time.Since(began)
				}
			})
		}
		for _, p := range parked[:4] {
			<-time.After(4 * time.Second)
			r.call(retry(call, p, `{"1":{}}`))
		}
		work.Wait()
		close(waited)
		for d := range waited {
			if d != 10*time.Second {
				t.Errorf("a call waited for %v", d)
			}
		}
	})
}

func TestACallOfASessionThatHasEndedOpensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.call(echo(caller(drawbridge.Legacy)))
		r.EndSession("one")
		if err := r.SetLogLevel(t.Context(), "one", "debug"); err != nil {
			t.Error(err)
		}
		f := r.fault(echo(talker("one")))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Do(gone, "fake", echo(talker("two"))); err == nil {
			t.Error("a call that nobody waits for was made")
		}
		synctest.Wait()
		if n := len(r.fake.dialled()); n != 1 || f.Code != drawbridge.Transient ||
			r.pool.callerSessions.logLevel("one") != "" {
			t.Errorf("%d connections were made; %v", n, f)
		}
	})
}

func TestAServerThatCallersShareBecomesQuieter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		for session, level := range map[string]string{"loud": "debug", "calm": "error"} {
			if err := r.SetLogLevel(t.Context(), session, level); err != nil {
				t.Fatal(err)
			}
		}
		r.EndSession("loud")
		synctest.Wait()
		said := r.fake.params(mcp.MethodSetLevel)
		if got := rawjson.GetString(said[len(said)-1], "level"); got != "error" {
			t.Errorf("the last level is %s", got)
		}
	})
}

func TestALogLineOfNoCallIsForThePrincipalOfItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notices := make(chan drawbridge.ServerNotification, 10)
		r := newRig(t, newFake(),
			Options{FleetOptions: FleetOptions{OnNotification: func(n drawbridge.ServerNotification) { notices <- n }}},
			overHTTP)
		r.fake.last().note(mcp.NoteMessage, `{"data":"secret"}`)
		r.fake.last().note(mcp.NoteResourceUpdated, `{"uri":"a:b"}`) // which is so for everybody
		synctest.Wait()
		close(notices)
		var got []string
		for n := range notices {
			got = append(got, n.Method+" "+n.Principal)
		}
		if diff := cmp.Diff([]string{mcp.NoteMessage + " " + owner, mcp.NoteResourceUpdated + " "}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAResultAsksOnlyWhatItsCallerDeclared holds a stateless server to what it heard, which of a sandboxed one is less
// than the caller said.
func TestAResultAsksOnlyWhatItsCallerDeclared(t *testing.T) {
	const asks = `{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"message":"?"}}}}`
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newModernFake(onlyModern), Options{})
		r.fake.on(mcp.MethodToolsCall, always(asks))
		call := echo(asker())
		if got := string(r.call(call).Raw); !strings.Contains(got,
			`{"message":"?","_meta":{"drawbridge/server":"fake"}}`) {
			t.Error(got)
		}
		call.Caller.Capabilities = json.RawMessage(`{"roots":{}}`)
		want := `call echo on fake: the server sent "elicitation/create", which the client did not declare to support`
		if f := r.fault(call); f.Code != drawbridge.ServerError || f.Error() != want {
			t.Error(f)
		}
	})
}

func TestWhatAClientSaysOnItsOwnReachesTheServersItIsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.on(mcp.MethodInitialize,
			always(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"extensions":{"com.acme/x":{}}},"serverInfo":{"name":"fake","version":"1"}}`))
		r := newRig(t, f, Options{})
		c := talker("one")
		c.Capabilities = json.RawMessage(`{"roots":{},"extensions":{"com.acme/x":{}}}`)
		r.call(echo(c))
		r.call(echo(talker("two"))) // who declares neither
		for _, session := range []string{"one", "two", ""} {
			for _, method := range []string{mcp.NoteRootsChanged, "notifications/acme/moved", mcp.NoteInitialized,
				mcp.NoteTaskStatus, mcp.NoteToolsChanged} {
				r.ForwardNotification(t.Context(), session, method, json.RawMessage(`{"of":"`+session+`"}`))
			}
		}
		synctest.Wait()
		for method, want := range map[string]string{mcp.NoteRootsChanged: `{"of":"one"}`,
			"notifications/acme/moved": `{"of":"one"}`, mcp.NoteTaskStatus: "", mcp.NoteToolsChanged: ""} {
			var heard []string
			for _, params := range f.params(method) {
				heard = append(heard, string(params))
			}
			if got := strings.Join(heard, " "); got != want {
				t.Errorf("%s: the server heard %q, want %q", method, got, want)
			}
		}
	})
}
