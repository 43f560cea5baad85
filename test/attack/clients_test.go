//go:build !nomcp

package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestHostileClients has clients that mean harm, beside an honest one, which is answered all the while.
func TestHostileClients(t *testing.T) {
	for _, tt := range []struct {
		name string
		try  func(t *testing.T)
	}{
		{"HC-1 sessions that are opened and left", abandonedSessions},
		{"HC-2 hundreds of calls that hang", hangingCalls},
		{"HC-3 bodies that never end", slowBodies},
		{"DO-2 connections that say nothing", silentConnections},
		{"HC-4 ends the calls of others", cancelsOfOthers},
		{"HC-7 takes up the streams of others", streamsOfOthers},
		{"HC-14 writes into the log", logInjection},
		{"HC-15 looks for a door behind the door", noOtherDoor},
		{"HC-16 two tenants call the same", twoTenants},
	} {
		t.Run(tt.name, tt.try)
	}
}

// abandonedSessions opens sessions and never comes back: each costs some memory, and no goroutine. (How many there may
// be at most is in package server, TestSessionsEnd.)
func abandonedSessions(t *testing.T) {
	const sessions, each = 300, 64 << 10
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := openDoor(t, gateway.Config{Servers: serversOf(up.Stdio("up"))})
	d.session()
	before, goroutines := settled(), runtime.NumGoroutine()
	for range sessions {
		d.session()
	}
	if got := d.post(safe); !got.went() {
		t.Errorf("a call is answered with %d %s", got.status, got.body)
	}
	if after := settled(); after > before+sessions*each {
		t.Errorf("%d KiB are kept of a session", (after-before)/sessions>>10)
	}
	eventually(t, "a goroutine is kept of each session",
		func() bool { return runtime.NumGoroutine() < goroutines+sessions/4 })
	if started := up.Started(); started > 2 {
		t.Errorf("%d processes were started for sessions that called nothing", started)
	}
}

// hangingCalls makes calls that are not answered: another client's is.
func hangingCalls(t *testing.T) {
	const calls = 200
	release := make(chan struct{})
	slow := mcptest.NewServer(t, mcptest.Tool{Name: "safe", Answer: func(_ context.Context, c *mcptest.ServerCall) (
		json.RawMessage, error) {
		<-release
		return c.Text("at last"), nil
	}})
	good := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := openDoor(t, gateway.Config{Servers: serversOf(slow.Stdio("up"), good.Stdio("good"))})
	var clients sync.WaitGroup
	for range calls {
		clients.Go(func() {
			if got := d.post(safe); !strings.Contains(got.body, "at last") {
				t.Errorf("a slow call is answered with %d %s", got.status, got.body)
			}
		})
	}
	slow.Await(mcp.MethodToolsCall, calls)
	for range 20 {
		got := d.post(strings.ReplaceAll(safe, "up__safe", "good__safe"), mcp.HeaderName, "good__safe")
		if !got.went() {
			t.Errorf("another's call is answered with %d %s", got.status, got.body)
		}
	}
	close(release)
	clients.Wait()
}

// slowBodies begins requests and never ends them.
func slowBodies(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Servers: serversOf(up.HTTP("up"))})
	for range 50 {
		conn, err := net.Dial("tcp", d.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: "+d.address()+"\r\nContent-Type: application/json\r\n"+
			length(safe)+"\r\n{")
	}
	if got := d.post(safe); !got.went() {
		t.Errorf("a call is answered with %d %s", got.status, got.body)
	}
}

// silentConnections opens connections that say nothing, and requests whose head never ends: row DO-2.
func silentConnections(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Servers: serversOf(up.HTTP("up"))})
	for i := range 200 {
		conn, err := net.Dial("tcp", d.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			_, _ = conn.Write([]byte("POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\nX-Never: e"))
		}
	}
	for range 10 {
		if got := d.post(safe); !got.went() {
			t.Errorf("a call is answered with %d %s", got.status, got.body)
		}
	}
}

// inSession makes a message of a session of one that is in none.
func inSession(body string) string {
	return strings.Replace(body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "", 1)
}

// cancelsOfOthers cancels whatever may be the id of another's call, thousands of times, from sessions and without.
func cancelsOfOthers(t *testing.T) {
	release := make(chan struct{})
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe", Answer: func(ctx context.Context, c *mcptest.ServerCall) (
		json.RawMessage, error) {
		select {
		case <-release:
		case <-ctx.Done():
			return c.Text("cancelled"), nil
		}
		return c.Text("whole"), nil
	}})
	d := openDoor(t, gateway.Config{Servers: serversOf(up.Stdio("up"))})
	mine, theirs := d.session(), d.session()
	var calls sync.WaitGroup
	for i, headers := range [][]string{mine, nil} {
		calls.Go(func() {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up__safe",%s}}`, meta)
			if headers != nil {
				body = inSession(body)
			}
			got := d.post(body, headers...)
			if !strings.Contains(got.body, "whole") {
				t.Errorf("call %d is answered with %d %s", i, got.status, got.body)
			}
		})
	}
	up.Await(mcp.MethodToolsCall, 2)
	for i := range 200 {
		for _, id := range []string{"7", `"7"`, "7.0", "null", "1", "2", fmt.Sprint(i)} {
			note := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id +
				`,"reason":"harm",` + meta + `}}`
			if i%2 == 0 {
				d.post(note, mcp.HeaderMethod, mcp.NoteCancelled, mcp.HeaderName, "")
			} else {
				d.post(inSession(note), theirs...)
			}
		}
	}
	close(release)
	calls.Wait()
}

// streamsOfOthers asks for the rest of streams that are none of its own.
func streamsOfOthers(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe", Answer: func(_ context.Context, c *mcptest.ServerCall) (
		json.RawMessage, error) {
		c.Notify(mcp.NoteMessage, json.RawMessage(`{"level":"emergency","data":"canary"}`))
		return c.Text("canary"), nil
	}})
	d := openDoor(t, gateway.Config{Servers: serversOf(up.Stdio("up"))})
	mine, theirs := d.session(), d.session()
	got := d.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__safe","_meta":{"progressToken":1}}}`, mine...)
	_, rest, streamed := strings.Cut(got.body, "id: ")
	last, _, _ := strings.Cut(rest, "\n")
	if !streamed || !strings.Contains(got.body, "canary") {
		t.Fatalf("the call is answered without a stream: %d %s", got.status, got.body)
	}
	for _, id := range []string{last, last + "0", "0", "1-1", strings.Repeat("9", 10_000), "x\tid: 1", "../" + last} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set(mcp.HeaderVersion, mcp.Version20251125)
		r.Header.Set(mcp.HeaderSession, theirs[len(theirs)-1])
		r.Header.Set(mcp.HeaderLastEvent, id)
		if got := d.do(r); got.status != http.StatusBadRequest || strings.Contains(got.body, "canary") {
			t.Errorf("%.30q is answered with %d %s", id, got.status, got.body)
		}
	}
}

// logInjection has both ends say what would end a line of a log, and begin another.
func logInjection(t *testing.T) {
	const evil = "x\r\nlevel=ERROR msg=\"the owner signed in\"\u2028\x1b[2J\x1b]0;owned\x07\u202e"
	var log safeBuffer
	bad := mcptest.NewHostileServer(t, mcptest.Noise, 20, mcptest.Tool{Name: "safe"}, mcptest.Tool{Name: evil,
		Description: evil}, mcptest.Instructions(evil))
	d := openDoor(t, gateway.Config{Servers: serversOf(bad.Stdio("up")),
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	quoted := string(rawjson.Quote(evil))
	for _, body := range []string{
		safe, strings.ReplaceAll(safe, `"up__safe"`, quoted), strings.ReplaceAll(safe, `"tools/call"`, quoted),
		strings.ReplaceAll(safe, `"id":1`, `"id":`+quoted),
		strings.ReplaceAll(safe, `"name":"siege"`, `"name":`+quoted), `{"jsonrpc":"2.0","method":` + quoted + `}`,
	} {
		d.post(body)
		d.post(body, mcp.HeaderMethod, "", mcp.HeaderName, "", mcp.HeaderVersion, mcp.Version20251125)
	}
	h := append(d.session(), "X-Request-Id", "x\tlevel=ERROR")
	d.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":`+quoted+`}}`, h...)
	d.stop()
	for line := range strings.Lines(log.text()) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "time=") || strings.ContainsAny(line, "\r\x1b\x07\u2028\u202e") {
			t.Errorf("a line of the log is %q", line)
		}
	}
}

// noOtherDoor looks for what manages the house, with the right token: there is MCP, what probes read, and nothing else.
func noOtherDoor(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Servers: serversOf(up.HTTP("up")), Token: token})
	readOnly := map[string]bool{"/healthz": true, "/metrics": true} // probes and collectors read them
	for _, route := range []string{"/", "/admin", "/api", "/api/servers", "/config", "/mcp/config", "/mcp/up",
		"/healthz", "/metrics", "/debug/pprof/", "/debug/vars", "/shutdown", "/.env"} {
		want, methods := http.StatusNotFound, []string{http.MethodPost, http.MethodPut, http.MethodDelete}
		if readOnly[route] {
			want = http.StatusMethodNotAllowed
		} else {
			methods = append(methods, http.MethodGet)
		}
		for _, method := range methods {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.address()+route,
				strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			if got := d.do(r); got.status != want {
				t.Errorf("%s %s is answered with %d %s", method, route, got.status, got.body)
			}
		}
	}
	for _, method := range []string{"drawbridge/reload", "servers/add", "admin/servers", "config/set", "rpc.discover",
		"system.listMethods", "debug/heap"} {
		body := strings.Replace(safe, mcp.MethodToolsCall, method, 1)
		got := d.post(body, "Authorization", "Bearer "+token, mcp.HeaderMethod, method, mcp.HeaderName, "")
		if got.went() {
			t.Errorf("%s is answered with %d %s", method, got.status, got.body)
		}
	}
	if calls := callsAfter(up, 0); len(calls) > 0 {
		t.Errorf("the server hears %v", calls)
	}
}

// twoTenants has two principals ask the same of the same server at once: what was answered to one is never given to
// the other. Each answer has a number of its own, so that one which is given twice shows.
func twoTenants(t *testing.T) {
	var last atomic.Int64
	number := func(_ context.Context, c *mcptest.ServerCall) (json.RawMessage, error) {
		return c.Text(fmt.Sprintf("number %d of it", last.Add(1))), nil
	}
	up := mcptest.NewServer(t, mcptest.Tool{Name: "same", Answer: number}, mcptest.Prompt{Name: "same", Answer: number},
		mcptest.Resource{URI: "test://same", Answer: number})
	h := open(t, up.Stdio("up"))
	h.MountNew(t.Context())
	var given sync.Map
	var tenants sync.WaitGroup
	for _, principal := range []string{"ada", "bob"} {
		tenants.Go(func() {
			caller := h.Owner()
			caller.Principal = principal
			for range 50 {
				for method, params := range map[string]string{
					mcp.MethodToolsCall:  `{"name":"up__same","arguments":{}}`,
					mcp.MethodPromptsGet: `{"name":"up__same"}`, mcp.MethodResourcesRead: `{"uri":"test://same"}`,
				} {
					result, err := h.Deck().Do(t.Context(), drawbridge.Call{Caller: caller, Method: method,
						Params: json.RawMessage(params)})
					_, rest, ok := strings.Cut(string(result.Raw), "number ")
					n, _, _ := strings.Cut(rest, " ")
					if other, twice := given.LoadOrStore(n, principal); err != nil || !ok || twice {
						t.Errorf("%s of %s is answered with %s, %v; %v has it too", method, principal,
							result.Raw, err, other)
					}
				}
			}
		})
	}
	tenants.Wait()
}

// TestNamesAndBypasses has every way to a tool that rules deny: rows HC-10 and HC-12. Its server never hears of a call.
func TestNamesAndBypasses(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"}, mcptest.Tool{Name: "secret"})
	rules := &drawbridge.Rules{Default: drawbridge.Allow,
		Rules: []drawbridge.Rule{{At: "rules:1", Effect: drawbridge.Deny, Tools: []string{"up__secret"}}}}
	d := openDoor(t, gateway.Config{Servers: serversOf(up.Stdio("up")), Rules: rules})
	named := func(name string) string { return strings.Replace(safe, `"up__safe"`, string(rawjson.Quote(name)), 1) }
	secret, session := named("up__secret"), d.session()
	if got, again := d.post(safe), d.post(inSession(safe), session...); !got.went() || !again.went() {
		t.Fatalf("what is allowed is answered with %d %s and %d %s", got.status, got.body, again.status, again.body)
	}
	for name, body := range map[string]string{
		"HC-10 its name":                    secret,
		"HC-10 its own name":                named("secret"),
		"HC-10 a dot":                       named("up.secret"),
		"HC-10 a slash":                     named("up/secret"),
		"HC-10 a colon":                     named("up:secret"),
		"HC-10 in capitals":                 named("UP__SECRET"),
		"HC-10 the separator twice":         named("up____secret"),
		"HC-10 behind another server":       named("drawbridge__up__secret"),
		"HC-10 behind itself":               named("up__up__secret"),
		"HC-10 a way up":                    named("up__safe/../secret"),
		"HC-10 blanks around":               named(" up__secret\t"),
		"HC-10 a NUL behind":                named("up__secret\x00"),
		"HC-10 a letter that looks like it": named("up__secr\u0435t"),
		"HC-10 a space of no width":         named("up__sec\u200bret"),
		"HC-10 full width":                  named("up__\uff53ecret"),
		"HC-10 escaped":                     strings.Replace(secret, "secret", `s\u0065cret`, 1),
		"HC-10 a name of a megabyte":        named("up__secret" + strings.Repeat("t", 1<<20)),
		"HC-10 no text":                     strings.Replace(safe, `"up__safe"`, `["up__secret"]`, 1),
		"HC-12 in a batch":                  "[" + safe + "," + secret + "]",
		"HC-12 as a task": strings.Replace(secret, `"arguments"`,
			`"task":{"ttl":1000},"arguments"`, 1),
		"HC-12 on behalf of a task": strings.Replace(secret, `"_meta":{`,
			`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"},`, 1),
		"HC-12 with a state made up": strings.Replace(secret, `"arguments"`,
			`"requestState":"bWFkZSB1cA","inputResponses":{"1":{}},"arguments"`, 1),
		"HC-12 by the card that describes": strings.Replace(named("drawbridge_tools"), `"arguments":{`,
			`"arguments":{"call":"up__secret",`, 1),
		"HC-12 as a prompt": strings.Replace(secret, mcp.MethodToolsCall, mcp.MethodPromptsGet, 1),
		"HC-12 as a resource": strings.NewReplacer(mcp.MethodToolsCall, mcp.MethodResourcesRead,
			`"name":"up__secret"`, `"uri":"up__secret"`).Replace(secret),
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := mcp.ParseMessage([]byte(body))
			target, _ := mcp.TargetName(m.Method, m.Params)
			for _, got := range []answer{
				d.post(body, mcp.HeaderMethod, m.Method, mcp.HeaderName, mcp.EncodeHeaderValue(target)),
				d.post(inSession(body), session...),
			} {
				if got.went() && strings.Contains(got.body, `"content"`) && m.Method == mcp.MethodToolsCall &&
					target != "drawbridge_tools" {
					t.Errorf("it is answered with %d %s", got.status, got.body)
				}
			}
			for _, call := range up.Requests() {
				if call.Method != mcp.MethodToolsList && strings.Contains(string(call.Params), "secret") {
					t.Errorf("the server hears %+v", call)
				}
			}
		})
	}
}

// A safeBuffer is a buffer for several writers.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
