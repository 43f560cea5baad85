//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// stdioRow is a row that starts one of mcptest's servers.
func stdioRow(t *testing.T, name string, args ...string) config.Server {
	t.Helper()
	command, args, env := mcptest.ServerCommand(t, name, args...)
	row := config.Server{
		ID: drawbridge.ServerID(name), Type: "stdio", Command: command, Args: args,
		Hash: name, Enabled: true, Phase: drawbridge.Idle,
	}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		row.Env = append(row.Env, config.NameValue{Name: name, Value: value})
	}
	return row
}

func urlRow(id, typ, url string) config.Server {
	return config.Server{ID: drawbridge.ServerID(id), Type: typ, URL: url, Hash: id, Enabled: true,
		Phase: drawbridge.Idle}
}

// A realFleet is a fleet of real servers.
type realFleet struct {
	*Fleet
	t   *testing.T
	mem *memory
	end func()
}

// runReal runs a fleet until the end of the test.
func runReal(t *testing.T, o Options, rows ...config.Server) *realFleet {
	t.Helper()
	r := &realFleet{t: t, mem: &memory{onList: make(chan drawbridge.Listing, 100)}}
	o.MountStore, o.Principal, o.OnListed = r.mem, owner, r.mem.listed
	if o.CloseGrace == 0 {
		o.CloseGrace = 200 * time.Millisecond
	}
	var err error
	if r.Fleet, err = NewFleet(t.Context(), rows, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	for !r.pool.isRunning() {
		<-time.After(time.Millisecond)
	}
	r.end = func() { cancel(); <-done }
	t.Cleanup(r.end)
	return r
}

func (r *realFleet) mount(id drawbridge.ServerID) drawbridge.Listing {
	r.t.Helper()
	l, err := r.Mount(r.t.Context(), id)
	if err != nil {
		r.t.Fatalf("%v\n%+v", err, r.Status())
	}
	return l
}

// say calls echo and checks that it answers.
func (r *realFleet) say(id drawbridge.ServerID, c drawbridge.Caller) {
	r.t.Helper()
	if got := r.text(id, c, "echo", `{"text":"hello"}`); got != "hello" {
		r.t.Errorf("echo said %q", got)
	}
}

// text calls a tool and gives the text of its answer.
func (r *realFleet) text(id drawbridge.ServerID, c drawbridge.Caller, tool, arguments string) string {
	r.t.Helper()
	result, err := r.Do(r.t.Context(), id, toolCall(c, tool, arguments))
	if err != nil {
		r.t.Fatalf("%v\n%+v", err, r.Status())
	}
	for block := range rawjson.Elements(rawjson.Get(result.Raw, "content")) {
		return rawjson.GetString(block, "text")
	}
	r.t.Fatalf("no content in %s", result.Raw)
	return ""
}

func (r *realFleet) statusOf(id drawbridge.ServerID) drawbridge.ServerStatus {
	for _, s := range r.Status() {
		if s.Server == id {
			return s
		}
	}
	return drawbridge.ServerStatus{}
}

// awaitListing waits for a listing that has, or has not, a tool.
func (r *realFleet) awaitListing(tool string, there bool) {
	r.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case l := <-r.mem.onList:
			if strings.Contains(names(l), tool) == there {
				return
			}
		case <-timeout:
			r.t.Fatalf("no listing where %q is there: %v", tool, there)
		}
	}
}

// TestFaultyStdioServers has the rows of protocol.md, section 4.2, that are about stdio, and more of their kind.
func TestFaultyStdioServers(t *testing.T) {
	for _, tt := range []struct {
		name, server string
		args         []string
		check        func(r *realFleet)
	}{
		{"log lines, byte order marks, two messages on a line, messages without jsonrpc", "junk", nil,
			func(r *realFleet) {
				for range 10 {
					r.say("junk", caller(drawbridge.Legacy))
				}
				if n := r.statusOf("junk").Junk; n == 0 {
					r.t.Error("nothing was counted")
				}
			}},
		{"silent on server/discover", "silent-discover", nil, nil},
		{"exits on server/discover", "exit-discover", nil, nil},
		{"slow to start", "slow-start", []string{"1500"}, nil},
		{"modern only, and strict", "modern-only", nil, nil},
		{"floods its client", "flood", []string{"2000"}, func(r *realFleet) {
			p := &peer{}
			call := toolCall(caller(drawbridge.Legacy), "echo", `{"text":"x"}`)
			call.Peer = p
			if _, err := r.Do(r.t.Context(), "flood", call); err != nil || len(p.noted()) != 2000 {
				r.t.Errorf("%v; %d of 2000 log lines arrived", err, len(p.noted()))
			}
		}},
		{"a line of 5 MB", "huge-line", []string{"5000000"}, func(r *realFleet) {
			if n := len(r.text("huge-line", caller(drawbridge.Legacy), "echo", `{}`)); n != 5_000_000 {
				r.t.Errorf("%d bytes arrived", n)
			}
		}},
		{"pages", "many-tools", []string{"250", "10"}, func(r *realFleet) {
			if n := r.statusOf("many-tools").Cards; n != 250 {
				r.t.Errorf("%d tools", n)
			}
		}},
		{"pages without end", "endless-cursor", nil, func(r *realFleet) {}},
		{"the same page for ever", "repeat-cursor", nil, nil},
		{"tools that are none", "bad-schema", nil, func(r *realFleet) {
			if s := r.statusOf("bad-schema"); s.Fault != "list tools: 3 items were not objects and were left out" {
				r.t.Errorf("%+v", s)
			}
		}},
		{"crashes in a call", "crash-on-call", nil, func(r *realFleet) {
			_, err := r.Do(r.t.Context(), "crash-on-call", toolCall(caller(drawbridge.Legacy), "echo", `{}`))
			want := "call echo on crash-on-call: connection lost before the answer: the server exited: exit status 3 (it may have taken effect: check before repeating it)"
			if err == nil || err.Error() != want || !drawbridge.AsFault(err).Ambiguous {
				r.t.Errorf("got %v", err)
			}
			r.mount("crash-on-call")
			if s := r.statusOf("crash-on-call"); s.Phase != drawbridge.Ready || !strings.Contains(s.Fault,
				"the server exited: exit status 3") {
				r.t.Errorf("%+v", s)
			}
		}},
		{"ignores that its input ends, and SIGTERM", "ignore-stdin", nil, func(r *realFleet) {
			began := time.Now()
			r.end()
			if took := time.Since(began); took > 5*time.Second {
				r.t.Errorf("the end took %v", took)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := runReal(t, Options{ProbeTimeout: time.Second, OnDemand: true}, stdioRow(t, tt.server, tt.args...))
			r.mount(drawbridge.ServerID(tt.server))
			if tt.check != nil {
				tt.check(r)
				return
			}
			r.say(drawbridge.ServerID(tt.server), caller(drawbridge.Legacy))
		})
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	missing := config.Server{ID: "missing", Command: "no-such-program-anywhere",
		Env: []config.NameValue{{Name: "PATH", Value: "/none"}}}
	nobody := urlRow("nobody", "http", "http://"+closedPort(t))
	for _, tt := range []struct {
		row  config.Server
		want string
		next string
	}{
		{stdioRow(t, "exit-at-once"), "mount exit-at-once: connect: the server exited: exit status 1", ""},
		{stdioRow(t, "hang"), "mount hang: connect: timeout: no answer within 2s ([mcp] connect_timeout)", ""},
		{missing, `mount missing: connect: command "no-such-program-anywhere" not found on PATH`, "install it, or configure its full path"},
		{nobody, "mount nobody: connect: dial tcp ", ""},
	} {
		t.Run(string(tt.row.ID), func(t *testing.T) {
			t.Parallel()
			limit := time.Minute // a busy machine starts no process in two seconds
			if tt.row.ID == "hang" {
				limit = 2 * time.Second
			}
			r := runReal(t, Options{ProbeTimeout: 500 * time.Millisecond, ConnectTimeout: limit,
				OnDemand: true}, tt.row)
			_, err := r.Mount(t.Context(), tt.row.ID)
			var f *drawbridge.Fault
			if !errors.As(err, &f) || !strings.HasPrefix(f.Error(), tt.want) || f.Next != tt.next ||
				f.Code != drawbridge.Transient {
				t.Errorf("got %v, %+v", err, f)
			}
			s := r.statusOf(tt.row.ID)
			if s.Phase != drawbridge.Faulted {
				t.Errorf("%+v", s)
			}
			if tt.row.ID == "exit-at-once" && fmt.Sprint(s.Stderr) != "[exit-at-once: cannot find the configuration]" {
				t.Errorf("stderr is %q", s.Stderr)
			}
		})
	}
}

func TestAServerThatEchoesIDsAsStrings(t *testing.T) {
	r := runReal(t, Options{ProbeTimeout: time.Second, OnDemand: true}, stdioRow(t, "string-id"))
	_, err := r.Mount(t.Context(), "string-id")
	const want = "mount string-id: connect: malformed response: the id is not the integer that the request had"
	if f := drawbridge.AsFault(err); f.Error() != want || f.Code != drawbridge.ServerError {
		t.Errorf("got %v, %+v", err, f)
	}
}

func TestAServerThatWantsToKnowWhoAsks(t *testing.T) {
	asked := 0
	row := httpRow(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Authorization") != "Bearer wrong" {
			t.Error("the row's headers are not sent")
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	row.Headers = []config.NameValue{{Name: "Authorization", Value: "Bearer wrong"}}
	r := runReal(t, Options{OnDemand: true}, row)
	_, err := r.Mount(t.Context(), row.ID)
	f := drawbridge.AsFault(err)
	if f.Code != drawbridge.AuthFailure ||
		f.Error() != "mount everything: connect: status 401 Unauthorized (check the headers of its row)" || asked != 1 {
		t.Errorf("%v, %+v; it was asked %d times", f, f, asked)
	}
	_, err = r.Do(t.Context(), row.ID, echo(caller(drawbridge.Legacy)))
	if f := drawbridge.AsFault(err); f.Code != drawbridge.AuthFailure || f.Code.Retryable() {
		t.Errorf("%v, %+v", f, f)
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestACallThatHangs(t *testing.T) {
	row := stdioRow(t, "hang-call")
	row.Timeout = 300 * time.Millisecond
	r := runReal(t, Options{}, row)
	_, err := r.Do(t.Context(), "hang-call", toolCall(caller(drawbridge.Legacy), "echo", `{}`))
	if err == nil || !strings.HasPrefix(err.Error(),
		"call echo on hang-call: timeout: no answer and no progress within 300ms (timeout of server \"hang-call\")") {
		t.Errorf("got %v", err)
	}
}

func TestWhatAServerForkedDiesWithIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	r := runReal(t, Options{}, stdioRow(t, "forks", file))
	r.mount("forks")
	var pid int
	for pid == 0 {
		data, _ := os.ReadFile(file)
		_, _ = fmt.Sscan(string(data), &pid)
		<-time.After(5 * time.Millisecond)
	}
	r.end()
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the grandchild is there after the end: %v", err)
	}
}

func TestEverythingInEveryWay(t *testing.T) {
	for _, tt := range []struct {
		name string
		row  func(t *testing.T) config.Server
		era  drawbridge.ProtocolEra
	}{
		{"stdio, both", func(t *testing.T) config.Server { return stdioRow(t, "everything") },
			drawbridge.Legacy | drawbridge.Modern},
		{"stdio, legacy", func(t *testing.T) config.Server { return stdioRow(t, "everything-legacy") },
			drawbridge.Legacy},
		{"http, legacy", func(t *testing.T) config.Server { return httpRow(t, "http", mcptest.HTTPLegacy()) },
			drawbridge.Legacy},
		{"http, modern", func(t *testing.T) config.Server { return httpRow(t, "http", mcptest.HTTPModern()) },
			drawbridge.Legacy | drawbridge.Modern},
		{"sse", func(t *testing.T) config.Server { return httpRow(t, "sse", mcptest.HTTPSSE()) }, drawbridge.Legacy},
		{"sse, found out", func(t *testing.T) config.Server { return httpRow(t, "", mcptest.HTTPSSE()) },
			drawbridge.Legacy},
		{"http, found out", func(t *testing.T) config.Server { return httpRow(t, "", mcptest.HTTPLegacy()) },
			drawbridge.Legacy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := runReal(t, Options{RefreshEvery: 10 * time.Millisecond}, tt.row(t))
			id := r.Status()[0].Server
			l := r.mount(id)
			if l.Era != tt.era || len(l.Tools) < 10 || len(l.Prompts) != 2 || len(l.Resources) != 3 ||
				len(l.Templates) != 1 {
				t.Errorf("%v with %s", l.Era, names(l))
			}
			r.say(id, caller(drawbridge.Legacy))
			r.say(id, caller(drawbridge.Modern))
			r.awaitListing("extra", false)
			r.text(id, caller(drawbridge.Modern), "toggle", `{}`)
			r.awaitListing("extra", true)
		})
	}
}

// TestARealServerRefusesASubscription and tells of all else as before.
func TestARealServerRefusesASubscription(t *testing.T) {
	for name, row := range map[string]func(t *testing.T) config.Server{
		"stdio, modern": func(t *testing.T) config.Server { return stdioRow(t, "everything") },
		"stdio, legacy": func(t *testing.T) config.Server { return stdioRow(t, "everything-legacy") },
		"http, modern":  func(t *testing.T) config.Server { return httpRow(t, "http", mcptest.HTTPModern()) },
		"http, legacy":  func(t *testing.T) config.Server { return httpRow(t, "http", mcptest.HTTPLegacy()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			updates := make(chan string, 100)
			r := runReal(t, Options{RefreshEvery: 10 * time.Millisecond,
				FleetOptions: FleetOptions{OnNotification: func(n drawbridge.ServerNotification) {
					if n.Method == mcp.NoteResourceUpdated {
						updates <- rawjson.GetString(n.Params, "uri")
					}
				}}}, row(t))
			id := r.Status()[0].Server
			r.mount(id)
			for i := range 10 {
				also := fmt.Sprintf("test://items/%d", i)
				err := r.Watch(t.Context(), id, drawbridge.WatchSet{URIs: []string{"test://touched", also,
					"test://private/1", "test://private/2"}})
				some, ok := errors.AsType[*drawbridge.UnwatchedError](err)
				if !ok || strings.Join(some.Unwatched.URIs, " ") != "test://private/1 test://private/2" {
					t.Fatalf("got %v", err)
				}
				if err := r.Watch(t.Context(), id, drawbridge.WatchSet{URIs: []string{"test://touched",
					also}}); err != nil {
					t.Fatal(err)
				}
				r.text(id, caller(drawbridge.Modern), "touch", fmt.Sprintf(`{"uri":%q}`, also))
				for timeout, got := time.After(10*time.Second), ""; got != also; {
					select {
					case got = <-updates:
					case <-timeout:
						t.Fatalf("round %d: no update", i)
					}
				}
				r.text(id, caller(drawbridge.Modern), "toggle", `{}`)
				r.awaitListing("extra", i%2 == 0)
			}
		})
	}
}

func httpRow(t *testing.T, typ string, h http.Handler) config.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return urlRow("everything", typ, s.URL)
}

// TestACancellationThatOvertakesItsCall: over HTTP each message has a way of its own. A server that hears of the call
// when its cancellation is past asks a caller who is gone, and would wait for as long as there is the session.
func TestACancellationThatOvertakesItsCall(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	talker, err := mcptest.HTTPTalker(false, record)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(talker.Close)
	// the home's end comes with the test's
	sent, overtaken, over := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	// what is not answered in time is said again
	passed := sync.OnceFunc(func() { close(overtaken) })
	row := httpRow(t, "http", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		method := rawjson.GetString(body, "method")
		if method == mcp.MethodToolsCall {
			close(sent)
			<-overtaken
		}
		talker.ServeHTTP(w, r)
		switch {
		case method == mcp.NoteCancelled:
			passed()
		case r.Method == http.MethodDelete:
			over <- struct{}{}
		}
	}))
	r := runReal(t, Options{}, row)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-sent; cancel() }()
	if _, err := r.Do(ctx, row.ID, toolCall(asker(), "ask", `{"rounds":[["form"]]}`)); !errors.Is(err,
		context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	select {
	case <-over: // and every call in it
	case <-time.After(20 * time.Second):
		t.Fatal("the session of a call that the server may still be at goes on")
	}
}

// A restarting server is one that can be replaced behind its address.
type restarting struct{ handler atomic.Pointer[http.Handler] }

func (s *restarting) become(h http.Handler) { s.handler.Store(&h) }

func (s *restarting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.handler.Load()).ServeHTTP(w, r)
}

func TestAnHTTPServerThatRestarts(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func() http.Handler
		era  drawbridge.ProtocolEra
	}{
		{"legacy: the session is opened anew, and the call goes through", mcptest.HTTPLegacy, drawbridge.Legacy},
		{"modern: it listens again", mcptest.HTTPModern, drawbridge.Modern},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &restarting{}
			s.become(tt.make())
			web := httptest.NewServer(s)
			t.Cleanup(web.Close)
			r := runReal(t, Options{RefreshEvery: 10 * time.Millisecond}, urlRow("everything", "http", web.URL))
			r.mount("everything")
			r.awaitListing("echo", true)
			s.become(tt.make())
			web.CloseClientConnections()
			// Connections that were kept break under calls until the client has noticed.
			for tries := 0; ; tries++ {
				_, err := r.Do(t.Context(), "everything", toolCall(caller(tt.era), "add", `{"a":1,"b":2}`))
				if err == nil {
					break
				}
				if tries == 10 {
					t.Fatal(err)
				}
			}
			r.awaitListing("echo", true) // listed again, since nobody knows what was missed
			r.text("everything", caller(tt.era), "toggle", `{}`)
			r.awaitListing("extra", true)
		})
	}
}

// TestTheServerHearsOfACancelledCall covers "downstream aborts a modern POST", for both ways of saying so.
func TestTheServerHearsOfACancelledCall(t *testing.T) {
	for name, row := range map[string]func(t *testing.T) config.Server{
		"stdio":       func(t *testing.T) config.Server { return stdioRow(t, "everything") },
		"http modern": func(t *testing.T) config.Server { return httpRow(t, "http", mcptest.HTTPModern()) },
		"http legacy": func(t *testing.T) config.Server { return httpRow(t, "http", mcptest.HTTPLegacy()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runReal(t, Options{}, row(t))
			r.mount("everything")
			mark := filepath.Join(t.TempDir(), "mark")
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := r.Do(ctx, "everything", toolCall(caller(drawbridge.Modern), "slow",
				fmt.Sprintf(`{"ms":20000,"mark":%q}`, mark))); err == nil {
				t.Error("it was not cancelled")
			}
			for deadline := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
				if data, _ := os.ReadFile(mark); string(data) == "cancelled" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the server did not hear of it")
				}
			}
		})
	}
}

func TestAServerAsksThroughToItsCaller(t *testing.T) {
	for name, row := range map[string]func(t *testing.T) config.Server{
		"stdio": func(t *testing.T) config.Server { return stdioRow(t, "everything-legacy") },
		"http":  func(t *testing.T) config.Server { return httpRow(t, "http", mcptest.HTTPLegacy()) },
		"sse":   func(t *testing.T) config.Server { return httpRow(t, "sse", mcptest.HTTPSSE()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runReal(t, Options{}, row(t))
			id := r.Status()[0].Server
			p := &peer{answer: func(string) (json.RawMessage, error) {
				return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
			}}
			call := toolCall(talker("one"), "ask-elicitation", `{"message":"Who are you?"}`)
			call.Peer = p
			result, err := r.Do(t.Context(), id, call)
			if err != nil || !strings.Contains(string(result.Raw), "Ada") || len(p.questions()) != 1 {
				t.Errorf("%s, %v, %q", result.Raw, err, p.questions())
			}
		})
	}
}

// TestAServerWithoutSessionsIsAskedInTheOtherWay: one that speaks both generations over HTTP, and keeps no session in
// the stateful one, could not ask a stateful caller there. It is called in the way in which it can.
func TestAServerWithoutSessionsIsAskedInTheOtherWay(t *testing.T) {
	r := runReal(t, Options{}, httpRow(t, "http", mcptest.HTTPModern()))
	r.mount("everything")
	plain := caller(drawbridge.Legacy)
	plain.Session = "two"
	for c, want := range map[*drawbridge.Caller]string{
		{Kind: drawbridge.External, Principal: owner, Era: drawbridge.Legacy, Session: "one",
			Capabilities: []byte(`{"elicitation":{}}`)}: mcp.Version20260728,
		&plain: mcp.Version20260728,
	} {
		call := toolCall(*c, "whoami", `{}`)
		call.Peer = &peer{}
		result, err := r.Do(t.Context(), "everything", call)
		if err != nil {
			t.Fatal(err)
		}
		var said string
		for block := range rawjson.Elements(rawjson.Get(result.Raw, "content")) {
			said = rawjson.GetString(block, "text")
		}
		if got := rawjson.GetString([]byte(said), "meta", mcp.MetaProtocolVersion); got != want {
			t.Errorf("a caller of session %s is spoken for in %q, want %q: %s", c.Session, got, want, said)
		}
	}
}
