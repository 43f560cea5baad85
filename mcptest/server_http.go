package mcptest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// serveHTTP serves Streamable HTTP. Requests and notifications arrive as POSTs. The response to a session's GET is an
// event stream of the messages outside of any request.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.serveStream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := mcp.ParseMessage(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.deed.answerHTTPBadly != nil && s.deed.answerHTTPBadly(s, w, r, m) {
		return
	}
	c, known := s.sessionOf(r)
	switch {
	case !known:
		http.Error(w, "session not found", http.StatusNotFound)
		return
	case c == nil:
		c = s.session() // a session for this request only
		defer c.close()
	}
	if m.Method == mcp.MethodInitialize {
		id := rand.Text()
		s.mu.Lock()
		s.sessions[id] = s.session()
		c = s.sessions[id]
		s.mu.Unlock()
		w.Header().Set(mcp.HeaderSession, id)
	}
	done := make(chan struct{})
	p := &postResponse{w: w, id: m.ID}
	c.handleMessage(m, responseWriter{p.say, p.raw}, func() { close(done) })
	select {
	case <-done:
	case <-r.Context().Done():
		c.cancel(string(m.ID))
		<-done
	}
	p.finish()
}

// sessionOf returns the session that a request names in its header, or nil if it names none. known is false if the
// session that it names does not exist.
func (s *Server) sessionOf(r *http.Request) (c *serverSession, known bool) {
	id := r.Header.Get(mcp.HeaderSession)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id], id == "" || s.sessions[id] != nil
}

// serveStream handles requests other than POST. For a DELETE, it ends the session. For any other method, it sends an
// event stream of the session's messages outside of any request.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	c, _ := s.sessionOf(r)
	switch {
	case c == nil:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.sessions, r.Header.Get(mcp.HeaderSession))
		s.mu.Unlock()
		c.close()
	default:
		p := &postResponse{w: w}
		p.begin("text/event-stream")
		ear := &notificationSink{p.say}
		s.addSink(ear)
		defer s.removeSink(ear)
		select {
		case <-r.Context().Done():
		case <-c.ctx.Done():
		}
		p.finish()
	}
}

// A postResponse writes the HTTP response to one request: JSON if the MCP response is its only message, otherwise an
// event stream.
type postResponse struct {
	id []byte

	mu     sync.Mutex
	w      http.ResponseWriter
	stream bool
	begun  bool
	over   bool
}

func (p *postResponse) say(m mcp.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	only := m.IsResponse() && bytes.Equal(m.ID, p.id)
	if p.over || !p.begun && !p.stream && only && p.plain(m) {
		return
	}
	p.event(onceChunk(m.Append(nil)))
}

// plain sends the MCP response as JSON.
func (p *postResponse) plain(m mcp.Message) bool {
	p.w.Header().Set("Content-Type", "application/json")
	if code := mcp.ErrorCode(m.Error); code == mcp.CodeMissingCapability || code == mcp.CodeUnsupportedVersion {
		p.w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = p.w.Write(m.Append(nil))
	p.begun, p.over = true, true
	return true
}

func (p *postResponse) raw(parts ...repeatedBytes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.event(parts...)
	}
}

// event writes bytes as one event.
func (p *postResponse) event(parts ...repeatedBytes) {
	if !p.begun {
		p.begun, p.stream = true, true
		p.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = io.WriteString(p.w, "event: message\ndata: ")
	writeChunks(p.w, parts)
	_, _ = io.WriteString(p.w, "\n\n")
	_ = http.NewResponseController(p.w).Flush()
}

// begin starts an event stream before the first message.
func (p *postResponse) begin(contentType string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.stream = true, true
	p.w.Header().Set("Content-Type", contentType)
	_ = http.NewResponseController(p.w).Flush()
}

// finish ends the response: nothing is written after it. If nothing was written, the status is 202.
func (p *postResponse) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		p.w.WriteHeader(http.StatusAccepted)
	}
	p.begun, p.over = true, true
}

// onceChunk returns a chunk that is written once.
func onceChunk(b []byte) repeatedBytes { return repeatedBytes{bytes: b, times: 1} }

// writeChunks writes each part the number of times that it requires. It stops when the client has disconnected.
func writeChunks(w io.Writer, parts []repeatedBytes) {
	for _, part := range parts {
		if part.times == 1 {
			if _, err := w.Write(part.bytes); err != nil {
				return
			}
			continue
		}
		if !writeOften(w, part) {
			return
		}
	}
}

// writeOften writes the bytes of a part repeatedly. It buffers them, unless the part has a pause between repetitions.
// It returns false if the writing failed or part.pause returned false.
func writeOften(w io.Writer, part repeatedBytes) bool {
	flusher, _ := w.(http.Flusher)
	buffered := bufio.NewWriterSize(w, 64<<10)
	for range part.times {
		if _, err := buffered.Write(part.bytes); err != nil {
			return false
		}
		if part.pause == nil {
			continue
		}
		if buffered.Flush() != nil {
			return false
		}
		if flusher != nil {
			flusher.Flush()
		}
		if !part.pause() {
			return false
		}
	}
	return buffered.Flush() == nil
}
