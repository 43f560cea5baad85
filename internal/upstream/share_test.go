package upstream

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// quiet is the memory of a server that never asked.
func quiet() Options {
	return Options{IdleStop: -1,
		FleetOptions: FleetOptions{LastStatuses: map[string]drawbridge.ServerStatus{"hash": {}}}}
}

func TestCallersOfOneKindShareAServerThatNeverAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), quiet())
		for i := range 10 {
			r.call(echo(talker(fmt.Sprint("session ", i))))
		}
		if n := r.fake.open(); n != 2 {
			t.Errorf("%d connections for ten callers of one kind: want the home and theirs", n)
		}
		greetings := r.fake.params(mcp.MethodInitialize)
		if got := string(rawjson.Get(greetings[len(greetings)-1], "capabilities")); got != string(
			talker("x").Capabilities) {
			t.Errorf("the server was told of %s, which is not what they declare", got)
		}
		other := talker("other")
		other.Capabilities = json.RawMessage(`{"sampling":{}}`)
		r.call(echo(other))
		if n := r.fake.open(); n != 3 {
			t.Errorf("%d connections with a caller of another kind", n)
		}
	})
}

func TestAServerThatAsksHasASessionForEachCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), quiet())
		asking := func(session string) (drawbridge.Call, *peer) {
			p := &peer{answer: func(string) (json.RawMessage, error) {
				return json.RawMessage(`{"action":"decline"}`),
					nil
			}}
			call := echo(talker(session))
			call.Peer = p
			return call, p
		}
		first, heard := asking("one")
		answered := make(chan struct{})
		r.fake.on(mcp.MethodToolsCall, func(c *fakeConn, m mcp.Message) string {
			c.say(mcp.Message{ID: []byte(`"q"`), Method: mcp.MethodElicitation,
				Params: []byte(`{"message":"who?","requestedSchema":{}}`)})
			go func() {
				<-answered
				c.say(mcp.Message{ID: m.ID, Result: []byte(`{"content":[]}`)})
			}()
			return ""
		})
		r.fake.on("", func(*fakeConn, mcp.Message) string { close(answered); return "" })
		r.call(first)
		if n := len(heard.questions()); n != 1 {
			t.Errorf("the first question was passed on %d times", n)
		}
		r.fake.on(mcp.MethodToolsCall, always(`{"content":[]}`))
		for i := range 3 {
			call, _ := asking(fmt.Sprint("session ", i))
			r.call(call)
		}
		synctest.Wait()
		if n := r.fake.open(); n != 4 {
			t.Errorf("%d connections for three callers of a server that asks: want the home and one for each", n)
		}
		if !r.Status()[0].Asks {
			t.Error("the status does not say that the server asks")
		}
	})
}

// TestAHomeThatNobodyCallsIsSpared runs a real server, since what is spared is a process.
func TestAHomeThatNobodyCallsIsSpared(t *testing.T) {
	r := runReal(t, Options{IdleStop: -1}, stdioRow(t, "everything-legacy"))
	id := r.Status()[0].Server
	r.mount(id)
	c := caller(drawbridge.Legacy)
	c.Session, c.Capabilities = "one", json.RawMessage(`{"elicitation":{}}`)
	do := func(tool, arguments string) {
		t.Helper()
		if _, err := r.Do(t.Context(), id, toolCall(c, tool, arguments)); err != nil {
			t.Fatal(err)
		}
	}
	do("echo", `{"text":"x"}`)
	e := r.byName[id]
	e.sessions.mu.Lock()
	home := e.sessions.live[e.primaryKey()]
	home.lastUsed = home.lastUsed.Add(-unusedPrimaryIdle)
	e.sessions.mu.Unlock()
	wakeOne(e.signals.idleCheck)
	<-home.conn.Done()
	do("echo", `{"text":"x"}`)
	for s := r.Status()[0]; s.Phase != drawbridge.Ready; s = r.Status()[0] {
		<-time.After(time.Millisecond)
	}
	if pids := r.Status()[0].PIDs; len(pids) != 1 {
		t.Errorf("the server has processes %v", pids)
	}
	for len(r.mem.onList) > 0 {
		<-r.mem.onList
	}
	do("toggle", `{}`) // what changes there has the server listed again, for which the home comes back
	select {
	case <-r.mem.onList:
	case <-time.After(time.Minute):
		t.Error("the server was not listed again")
	}
}
