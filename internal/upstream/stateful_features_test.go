package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// withCapabilities is a stateful caller with a session, which declares these capabilities.
func withCapabilities(session, capabilities string) drawbridge.Caller {
	c := talker(session)
	c.Capabilities = json.RawMessage(capabilities)
	return c
}

// neverAsked are the options of a rig whose server is not known to send requests.
func neverAsked() Options {
	return Options{FleetOptions: FleetOptions{LastStatuses: map[string]drawbridge.ServerStatus{}}}
}

// TestFeaturesOfTheStatefulEra goes through the features for which a server of both eras gets a stateful session: it is
// opened at the call that needs it, and at no other.
func TestFeaturesOfTheStatefulEra(t *testing.T) {
	task := echo(withCapabilities("one", `{"tasks":{}}`))
	task.Params = rawjson.Apply(task.Params, rawjson.Put(json.RawMessage(`{}`), "task"))
	status := echo(withCapabilities("one", `{"tasks":{}}`))
	status.Method, status.Params = "tasks/get", json.RawMessage(`{"taskId":"1"}`)
	isolated := func(row *config.Server) { row.Isolate = "session" }
	share := func(f *fake) {
		f.on(mcp.MethodDiscover, always(`{"supportedVersions":[`+bothEras+
			`],"capabilities":{"tools":{},"extensions":{"com.example/x":{}}},"_meta":{"`+mcp.MetaServerInfo+
			`":{"name":"fake","version":"2"}}}`))
	}
	asks := echo(withCapabilities("one", `{"sampling":{},"elicitation":{},"roots":{}}`))
	for _, tt := range []struct {
		name     string
		call     drawbridge.Call
		row      func(*config.Server)
		fake     func(*fake)
		stateful bool
	}{
		{"plain", echo(withCapabilities("one", "")), nil, nil, false},
		{"a caller that may be asked", asks, nil, nil, false},
		{"a caller that may be asked, over HTTP", asks, overHTTP, nil, true},
		{"a task", task, nil, nil, true},
		{"the status of a task", status, nil, nil, true},
		{"a session for each caller", echo(withCapabilities("one", "")), isolated, nil, true},
		{"an extension that the server does not have",
			echo(withCapabilities("one", `{"extensions":{"com.example/x":{}}}`)), nil, nil, false},
		{"an extension that both have",
			echo(withCapabilities("one", `{"extensions":{"com.example/x":{}}}`)), nil, share, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := bothFake()
				f.on("tasks/get", always(`{"taskId":"1","status":"working"}`))
				if tt.fake != nil {
					tt.fake(f)
				}
				row := func(row *config.Server) {
					if tt.row != nil {
						tt.row(row)
					}
				}
				r := newRig(t, f, neverAsked(), row)
				if _, err := r.Mount(t.Context(), "fake"); err != nil {
					t.Fatal(err)
				}
				r.call(tt.call)
				if got := f.count(mcp.MethodInitialize) > 0; got != tt.stateful {
					t.Errorf("a stateful session was opened: %v", got)
				}
			})
		})
	}
}

// TestARequestThatTheStatelessEraRefuses has a server whose SDK refuses to send a request in the stateless era. The
// call is made again in a session of the caller's own, once; later calls begin there.
func TestARequestThatTheStatelessEraRefuses(t *testing.T) {
	for name, refusal := range map[string]string{
		"Go":         `"elicitation/create" cannot be sent while serving a request on protocol version 2026-07-28`,
		"TypeScript": `'roots/list' cannot be sent while serving a request on that revision`,
		"Python":     `Cannot send 'sampling/createMessage': this transport context has no back-channel for server-initiated requests.`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := bothFake()
				r := newRig(t, f, neverAsked())
				f.on(mcp.MethodToolsCall, func(_ *fakeConn, m mcp.Message) string {
					if mcp.MetaOf(m.Params) != nil && strings.Contains(string(m.Params), mcp.MetaProtocolVersion) {
						return fmt.Sprintf(`{"isError":true,"content":[{"type":"text","text":%s}]}`,
							rawjson.Quote("it failed: "+refusal))
					}
					return `{"content":[{"type":"text","text":"asked"}]}`
				})
				if got := string(r.call(echo(withCapabilities("plain", ""))).Raw); !strings.Contains(got, "it failed") {
					t.Errorf("a caller that may not be asked gets %s", got)
				}
				c := withCapabilities("one", `{"sampling":{},"elicitation":{},"roots":{}}`)
				for range 2 {
					if got := string(r.call(echo(c)).Raw); !strings.Contains(got, "asked") {
						t.Errorf("the caller gets %s", got)
					}
				}
				if n, m := f.count(mcp.MethodToolsCall), f.count(mcp.MethodInitialize); n != 4 || m != 1 {
					t.Errorf("%d calls and %d sessions for three calls of two callers", n, m)
				}
				if !r.Status()[0].Asks {
					t.Error("the status does not say that the server asks")
				}
			})
		})
	}
}

// TestOneProcessForAServerOfBothEras runs servers of the official SDK, which speak both eras. One process serves callers
// of both. A tool that sends its question as a stateful request gets a process of its own, at its first call.
func TestOneProcessForAServerOfBothEras(t *testing.T) {
	r := runReal(t, Options{}, stdioRow(t, "everything"), stdioRow(t, "asking"))
	processes := func(id drawbridge.ServerID) int {
		for _, s := range r.Status() {
			if s.Server == id {
				return len(s.PIDs)
			}
		}
		return -1
	}
	answers := &peer{answer: func(string) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
	}}
	do := func(id drawbridge.ServerID, c drawbridge.Caller, tool, arguments, want string) {
		t.Helper()
		call := toolCall(c, tool, arguments)
		call.Peer = answers
		if result, err := r.Do(t.Context(), id, call); err != nil || !strings.Contains(string(result.Raw), want) {
			t.Errorf("%s of %s returns %s, %v; want %s", tool, id, result.Raw, err, want)
		}
	}
	for _, id := range []drawbridge.ServerID{"everything", "asking"} {
		r.mount(id)
		do(id, caller(drawbridge.Modern), "echo", `{"text":"modern"}`, "modern")
		do(id, withCapabilities("plain", `{}`), "echo", `{"text":"plain"}`, "plain")
		do(id, withCapabilities("all", `{"sampling":{},"elicitation":{},"roots":{}}`), "echo", `{"text":"all"}`, "all")
		if n := processes(id); n != 1 {
			t.Errorf("%s has %d processes for callers of both eras", id, n)
		}
	}
	asked := withCapabilities("all", `{"elicitation":{}}`)
	do("everything", asked, "ask-elicitation", `{"message":"who?"}`, "Ada")
	do("everything", asked, "whoami", `{}`, `\"elicitation\":{}`)
	for range 2 {
		do("asking", asked, "ask", `{}`, "hello, Ada")
	}
	if n, m := len(answers.questions()), processes("asking"); n != 3 || m != 2 {
		t.Errorf("the callers were asked %d questions, by %d processes of the server that asks statefully", n, m)
	}
}
