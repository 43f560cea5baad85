package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

const (
	hello  = `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}`
	modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
	url    = "http://server.test/mcp"
)

// A httpHeard is a Handler that keeps what it hears, and answers with what it was given.
type httpHeard struct {
	mu     sync.Mutex
	notes  []string
	asks   []string
	answer string
	notify chan string // gets every note too, where it is set
}

func (h *httpHeard) HandleNotification(method string, params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, method)
	if h.notify != nil {
		h.notify <- method
	}
}

func (h *httpHeard) HandleRequest(_ context.Context, method string, _ json.RawMessage) (result,
	errorObject json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asks = append(h.asks, method)
	return json.RawMessage(h.answer), nil
}

func (h *httpHeard) take() (notes, asks []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	notes, asks = h.notes, h.asks
	h.notes, h.asks = nil, nil
	return notes, asks
}

// A pipes is a listener in memory, so that a test with a server can run on a clock of its own.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve runs a handler in memory and gives a client that reaches it under whatever name. Both end with the test.
func serve(t testing.TB, handler http.HandlerFunc) *http.Client {
	t.Helper()
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: handler}
	var work sync.WaitGroup
	work.Go(func() { _ = server.Serve(l) })
	transport := transportFor(t, "http://127.0.0.1", true, l.dial, nil)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		work.Wait()
	})
	return &http.Client{Transport: transport}
}

// dial makes an HTTPConn that ends with the test.
func dial(t testing.TB, o transport.HTTPOptions) *transport.HTTPConn {
	t.Helper()
	if o.URL == "" {
		o.URL = url
	}
	if o.Client == nil && usesStandard(t) {
		o.Client = &http.Client{Transport: transportFor(t, o.URL, o.AllowLocalNetwork, nil, nil)}
	}
	h := transport.NewHTTPConn(t.Context(), o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

// greet begins a legacy session.
func greet(t testing.TB, c transport.Conn) mcp.Message {
	t.Helper()
	m, err := c.Call(t.Context(), mcp.MethodInitialize, json.RawMessage(hello), nil)
	if err != nil || m.Result == nil {
		t.Fatalf("initialize: %+v, %v", m, err)
	}
	if err := c.Notify(t.Context(), mcp.NoteInitialized, nil); err != nil {
		t.Fatalf("initialized: %v", err)
	}
	return m
}

// read gives the message that a request carries.
func read(t testing.TB, r *http.Request) mcp.Message {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return mcp.Message{}
	}
	m, err := mcp.ParseMessage(body)
	if err != nil {
		t.Errorf("the server got %s: %v", body, err)
	}
	return m
}

// say writes a response; $ stands for the id of m.
func say(w http.ResponseWriter, status int, contentType string, m mcp.Message, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.ReplaceAll(body, "$", string(m.ID)))
	_ = http.NewResponseController(w).Flush()
}

const (
	plain  = "application/json"
	events = "text/event-stream"
	answer = `{"jsonrpc":"2.0","id":$,"result":{"ok":true}}`
)

// legacy is a server of the legacy generation with one session "s1": post answers requests in it, get opens its stream.
func legacy(t testing.TB, post, get http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			if get == nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			get(w, r)
			return
		case http.MethodDelete:
			return
		}
		body, _ := io.ReadAll(r.Body)
		m, err := mcp.ParseMessage(body)
		if err != nil {
			t.Errorf("the server got %s: %v", body, err)
		}
		switch {
		case m.Method == mcp.MethodInitialize:
			w.Header().Set("Mcp-Session-Id", "s1")
			say(w, 200, plain, m, `{"jsonrpc":"2.0","id":$,"result":{"protocolVersion":"2025-11-25"}}`)
		case m.Method == mcp.NoteInitialized:
			w.WriteHeader(http.StatusAccepted)
		default:
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			post(w, r)
		}
	}
}

func str(m mcp.Message) string {
	return fmt.Sprintf("result %s error %s", m.Result, m.Error)
}
