package mcptest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	protocol "github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPScript returns a server that answers POSTs from a script (see WriteScript), with one message per request and
// without sessions. The response is JSON, or an event stream if the script sends other messages before it. heard, if
// not nil, is called with the header and the body of every POST.
func HTTPScript(script string, heard func(header http.Header, body []byte)) http.Handler {
	return postOnly(func(w http.ResponseWriter, r *http.Request, body []byte, m protocol.Message) {
		if heard != nil {
			heard(r.Header.Clone(), body)
		}
		respond(w, newScripted(json.RawMessage(script)), m)
	})
}

// HTTPModernOnly returns the named server "modern-only" over HTTP: a strict server of the stateless generation. The
// stream of a subscription stays open until its client ends the request.
func HTTPModernOnly() http.Handler {
	var mu sync.Mutex // held while a request is handled, which may also write to the streams of listeners
	server := newModern()
	return postOnly(func(w http.ResponseWriter, r *http.Request, _ []byte, m protocol.Message) {
		mu.Lock()
		defer mu.Unlock()
		if m.Method != protocol.MethodListen {
			respond(w, server, m)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		stream := &messageStream{out: func(message []byte) {
			_, _ = w.Write(protocol.AppendSSEEvent(nil, protocol.SSEEvent{Data: message}))
			_ = http.NewResponseController(w).Flush()
		}}
		server.handle(stream, m)
		mu.Unlock()
		<-r.Context().Done()
		mu.Lock()
		server.forget(stream)
	})
}

// HTTPDropping returns a server of the stateful generation with one tool, echo. It closes the connection in the middle
// of the response to every call.
func HTTPDropping() http.Handler {
	return postOnly(func(w http.ResponseWriter, _ *http.Request, _ []byte, m protocol.Message) {
		if m.Method != protocol.MethodToolsCall {
			respond(w, legacyServer(), m)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
}

// HTTPOnlySSE returns HTTPSSE, but answers requests that do not belong to that transport with 405. Many servers without
// Streamable HTTP do the same.
func HTTPOnlySSE() http.Handler {
	sse := HTTPSSE()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodPost && r.URL.RawQuery != "" {
			sse.ServeHTTP(w, r)
			return
		}
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	})
}

// A Restarting is the server of HTTPLegacy or HTTPModern. It can lose its sessions, as if its process had been
// restarted.
type Restarting struct {
	modern bool

	mu      sync.Mutex
	server  *mcp.Server
	handler http.Handler
}

// HTTPRestarting returns a Restarting server of one generation: the stateless one if modern is true.
func HTTPRestarting(modern bool) *Restarting {
	s := &Restarting{modern: modern}
	s.Restart()
	return s
}

// Restart deletes all sessions: their streams end, and later requests of these sessions are answered with 404.
func (s *Restarting) Restart() {
	server := EverythingServer(nil)
	if !s.modern {
		server = EverythingServer(legacyOnly())
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: s.modern, PropagateRequestCancellation: s.modern})
	s.mu.Lock()
	old := s.server
	s.server, s.handler = server, handler
	s.mu.Unlock()
	if old == nil {
		return
	}
	for session := range old.Sessions() {
		_ = session.Close()
	}
}

// ServeHTTP passes the request to the current server.
func (s *Restarting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handler := s.handler
	s.mu.Unlock()
	handler.ServeHTTP(w, r)
}

// postOnly returns a handler that parses the message of a POST and calls handle. It answers other HTTP methods with
// 405.
func postOnly(handle func(w http.ResponseWriter, r *http.Request, body []byte, m protocol.Message)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := protocol.ParseMessage(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		handle(w, r, body, m)
	})
}

// respond calls a.handle with one message and sends the messages that it writes. Without any, the status is 202. A
// single response is sent as JSON, other messages as an event stream.
func respond(w http.ResponseWriter, a messageHandler, m protocol.Message) {
	var said [][]byte
	a.handle(&messageStream{out: func(message []byte) { said = append(said, message) }}, m)
	switch {
	case len(said) == 0:
		w.WriteHeader(http.StatusAccepted)
	case len(said) == 1 && strings.Contains(string(said[0]), `"id":`):
		w.Header().Set("Content-Type", "application/json")
		if answer, err := protocol.ParseMessage(said[0]); err == nil && answer.Error != nil &&
			protocol.ProtocolVersion(m.Params) != "" {
			w.WriteHeader(statusOf(protocol.ErrorCode(answer.Error)))
		}
		_, _ = w.Write(said[0])
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		for _, message := range said {
			_, _ = w.Write(protocol.AppendSSEEvent(nil, protocol.SSEEvent{Name: "message", Data: message}))
		}
	}
}

// statusOf returns the HTTP status that specification 2026-07-28 defines for a JSON-RPC error code. Earlier versions
// use status 200 for all errors.
func statusOf(code int) int {
	switch code {
	case protocol.CodeMethodNotFound:
		return http.StatusNotFound
	case protocol.CodeHeaderMismatch, protocol.CodeMissingCapability, protocol.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
