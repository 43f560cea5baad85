package transport_test

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// TestHeaders shows what a server sees of a request, beside its body.
func TestHeaders(t *testing.T) { overBoth(t, testHeaders) }

func testHeaders(t *testing.T) {
	marks := func(tool string) []mcp.HeaderParam {
		if tool != "weather" {
			return nil
		}
		return []mcp.HeaderParam{{Path: []string{"city"}, Header: "Mcp-Param-City", Type: "string"},
			{Path: []string{"day"}, Header: "Mcp-Param-Day", Type: "integer"}}
	}
	type seen struct {
		Host    string
		Headers map[string]string
	}
	requests := make(chan seen, 10)
	server := legacy(t, func(w http.ResponseWriter, r *http.Request) { say(w, 200, plain, read(t, r), answer) }, nil)
	h := dial(t, transport.HTTPOptions{
		HeaderParams: marks,
		Headers:      http.Header{"host": {"inner.test"}, "X-Key": {"k"}, "accept": {"text/plain"}},
		Client: serve(t, func(w http.ResponseWriter, r *http.Request) {
			s := seen{r.Host, map[string]string{}}
			for name, values := range r.Header {
				s.Headers[name] = strings.Join(values, "|")
			}
			delete(s.Headers, "User-Agent")
			delete(s.Headers, "Content-Length")
			requests <- s
			server(w, r)
		}),
	})
	with := func(more map[string]string) seen {
		s := seen{"inner.test", map[string]string{"X-Key": "k", "Accept": "application/json, text/event-stream",
			"Content-Type": "application/json"}}
		for name, value := range more {
			s.Headers[name] = value
		}
		return s
	}
	session := with(map[string]string{"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "s1"})
	check := func(what string, want seen) {
		t.Helper()
		if diff := cmp.Diff(want, <-requests); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	send := func(method, params string) {
		t.Helper()
		if _, err := h.Call(t.Context(), method, json.RawMessage(params), nil); err != nil {
			t.Error(err)
		}
	}
	greet(t, h)
	check("initialize", with(nil))
	check("initialized", session)
	stream := session
	stream.Headers = map[string]string{"X-Key": "k", "Accept": "text/event-stream",
		"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "s1"}
	check("the stream", stream)
	send(mcp.MethodToolsCall, `{"name":"weather","arguments":{"city":"Bonn"}}`)
	check("a legacy call", session)
	send(mcp.MethodToolsCall, `{"name":"weather","arguments":{"city":"Köln","day":3},`+modern+`}`)
	check("a modern call", with(map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "weather",
		"Mcp-Param-City": "=?base64?S8O2bG4=?=", "Mcp-Param-Day": "3",
	}))
	send(mcp.MethodResourcesRead,
		`{"uri":"file:///ä","_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}`)
	check("a modern read", with(map[string]string{
		"Mcp-Protocol-Version": "2027-01-01", "Mcp-Method": "resources/read", "Mcp-Name": "=?base64?ZmlsZTovLy/DpA==?=",
	}))
}

// TestConnectionsAreKept counts the connections of many calls in a row. Behind a stream the next call may come before
// the connection is free, so there may be a few.
func TestConnectionsAreKept(t *testing.T) { overBoth(t, testConnectionsAreKept) }

func testConnectionsAreKept(t *testing.T) {
	for _, tt := range []struct {
		contentType, body string
		most              int32
	}{{plain, answer, 1}, {events, "data: " + answer + "\n\n", 10}} {
		var conns atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			say(w, 200, tt.contentType, read(t, r), tt.body)
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		h := dial(t, transport.HTTPOptions{URL: server.URL})
		for range 200 {
			if _, err := h.Call(t.Context(), "ping", nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := conns.Load(); n > tt.most {
			t.Errorf("%s: 200 calls took %d connections, want at most %d", tt.contentType, n, tt.most)
		}
	}
}

// TestDeadConnection has a server that hangs up on a connection that was kept, just when it is used again: what only
// reads is sent again, a call of a tool is not.
func TestDeadConnection(t *testing.T) { overBoth(t, testDeadConnection) }

func testDeadConnection(t *testing.T) {
	for _, tt := range []struct {
		method   string
		want     httpReply
		requests int32
	}{
		{mcp.MethodToolsList, fine, 2},
		{mcp.MethodToolsCall, lost, 1},
	} {
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := read(t, r)
			if m.Method != tt.method || requests.Add(1) == 2 {
				say(w, 200, plain, m, answer)
				return
			}
			drop(w)
		}))
		t.Cleanup(server.Close)
		h := dial(t, transport.HTTPOptions{URL: server.URL})
		if _, err := h.Call(t.Context(), mcp.MethodPing, nil, nil); err != nil {
			t.Fatal(err)
		}
		got, err := do(t, h, tt.method, `{}`, nil)
		if diff := cmp.Diff(tt.want, got, sorted); diff != "" {
			t.Errorf("%s: %v %s", tt.method, err, diff)
		}
		if n := requests.Load(); n != tt.requests {
			t.Errorf("%s was sent %d times, want %d", tt.method, n, tt.requests)
		}
	}
}

func TestBadHeader(t *testing.T) { overBoth(t, testBadHeader) }

func testBadHeader(t *testing.T) {
	h := dial(t, transport.HTTPOptions{Headers: http.Header{"x-key": {"secret\n"}}})
	_, err := h.Call(t.Context(), mcp.MethodPing, nil, nil)
	if want := "header X-Key: its value holds a line break or another control character"; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestHTTP2 has a server over TLS: many calls at once share one connection.
func TestHTTP2(t *testing.T) { overBoth(t, testHTTP2) }

func testHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the server was spoken to in %s", r.Proto)
		}
		say(w, 200, events, read(t, r), "data: "+answer+"\n\n")
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	// the server changes its own when it closes
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trLocal := transportFor(t, "http://127.0.0.1", true, nil, config)
	h := dial(t, transport.HTTPOptions{URL: server.URL, Client: &http.Client{Transport: trLocal}})
	var work sync.WaitGroup
	for range 20 {
		work.Go(func() {
			if m, err := h.Call(t.Context(), "ping", nil, nil); err != nil || m.Result == nil {
				t.Errorf("%s, %v", str(m), err)
			}
		})
	}
	work.Wait()
}
