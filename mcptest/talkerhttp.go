package mcptest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A Talker is the named server "talker" over Streamable HTTP, in one generation: an http.Handler for httptest. Restart
// deletes all its sessions, and aborts their streams and requests.
type Talker struct {
	modern bool
	path   string

	mu     sync.Mutex
	lives  int
	life   *talkerLife
	closed bool // new requests are refused
}

// HTTPTalker returns a Talker that writes its events to the file at path (see ReadTalkerEvents). The caller must call
// Close.
func HTTPTalker(modern bool, path string) (*Talker, error) {
	h := &Talker{modern: modern, path: path}
	return h, h.start()
}

// A talkerLife is the state of a Talker between two restarts.
type talkerLife struct {
	t    *talker
	name string
	// ctx ends at the next restart. The function over ends ctx; ending makes sure that this happens only once. work
	// counts the running requests.
	ctx    context.Context
	over   context.CancelFunc
	ending sync.Once
	work   sync.WaitGroup

	mu       sync.Mutex
	opened   int
	sessions map[string]*httpSession
}

// An httpSession is a stateful session and its GET stream, which sends messages outside requests.
type httpSession struct {
	*talkSession
	mu      sync.Mutex
	waiting []mcp.Message
	wake    chan struct{}
}

func (h *Talker) start() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives++
	record, err := openEventRecorder(h.path, strconv.Itoa(h.lives))
	if err != nil {
		return err
	}
	l := &talkerLife{name: strconv.Itoa(h.lives), sessions: map[string]*httpSession{}}
	l.ctx, l.over = context.WithCancel(context.Background())
	l.t = newTalker(h.modern, record, func() { go h.Restart() })
	h.life = l
	record.event("start", 0, "")
	return nil
}

// Restart ends all running requests and sessions, and starts a new TalkerEvent.Life. It does not wait until the
// requests have ended.
func (h *Talker) Restart() {
	h.now().end()
	_ = h.start() // the file exists already
}

// Close ends all requests and sessions and waits for them.
func (h *Talker) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	l := h.now()
	l.end()
	l.work.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sessions {
		s.work.Wait()
	}
	l.t.record.close()
}

func (h *Talker) now() *talkerLife {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life
}

// enter returns the life in which a request is handled, or nil after Close. The caller must call work.Done of that life
// when the request is done.
func (h *Talker) enter() *talkerLife {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.life.work.Add(1)
	return h.life
}

func (l *talkerLife) end() {
	l.ending.Do(func() {
		l.t.record.event("stop", 0, "")
		l.over()
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, s := range l.sessions {
			s.end()
		}
	})
}

// ServeHTTP handles one request. If the Talker is restarted or closed meanwhile, the request is aborted.
func (h *Talker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := h.enter()
	if l == nil {
		panic(http.ErrAbortHandler)
	}
	defer l.work.Done()
	var m mcp.Message
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if m, err = mcp.ParseMessage(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.t.record.message(body, r.Header)
	}
	if h.modern {
		l.modern(w, r, m)
	} else {
		l.legacy(w, r, m)
	}
	if l.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// A postReply is the HTTP response to one POST: a JSON object for a single message, an event stream for several.
type postReply struct {
	w http.ResponseWriter
	// modern is true in the stateless generation, in which an error response has an HTTP status other than 200.
	modern bool

	mu     sync.Mutex
	stream bool
	over   bool
}

// say writes a message. A response is written as a JSON object if it is the first message. All other messages are
// written as events of a stream.
func (p *postReply) say(m mcp.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if m.IsResponse() && !p.stream {
		p.over = true
		p.w.Header().Set("Content-Type", "application/json")
		if m.Error != nil && p.modern {
			p.w.WriteHeader(statusOf(mcp.ErrorCode(m.Error)))
		}
		_, _ = p.w.Write(m.Append(nil))
		return
	}
	if !p.stream {
		p.stream = true
		p.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = p.w.Write(mcp.AppendSSEEvent(nil, mcp.SSEEvent{Data: m.Append(nil), Retry: -1}))
	_ = http.NewResponseController(p.w).Flush()
	p.over = m.IsResponse()
}

// close prevents all later writes.
func (p *postReply) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

func (l *talkerLife) modern(w http.ResponseWriter, r *http.Request, m mcp.Message) {
	if !m.IsRequest() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p := &postReply{w: w, modern: true}
	defer p.close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	l.t.stateless(ctx, m, r.Header, p.say)
}

func (l *talkerLife) legacy(w http.ResponseWriter, r *http.Request, m mcp.Message) {
	if m.Method == mcp.MethodInitialize {
		s := l.open(w)
		p := &postReply{w: w}
		s.take(m, p.say, nil)
		return
	}
	id := r.Header.Get(mcp.HeaderSession)
	l.mu.Lock()
	s := l.sessions[id]
	l.mu.Unlock()
	switch {
	case m.Method == mcp.MethodDiscover:
		http.Error(w, "initialize first", http.StatusBadRequest)
	case s == nil:
		http.Error(w, "no such session", http.StatusNotFound)
	case r.Method == http.MethodGet:
		s.stream(w, r)
	case r.Method == http.MethodDelete:
		l.mu.Lock()
		delete(l.sessions, id)
		l.mu.Unlock()
		s.close()
		w.WriteHeader(http.StatusNoContent)
	case !m.IsRequest():
		s.take(m, nil, nil)
		w.WriteHeader(http.StatusAccepted)
	default:
		p := &postReply{w: w}
		defer p.close()
		done := make(chan struct{})
		s.take(m, p.say, func() { close(done) })
		select {
		case <-done:
		case <-r.Context().Done():
		case <-l.ctx.Done():
		}
	}
}

func (l *talkerLife) open(w http.ResponseWriter) *httpSession {
	s := &httpSession{wake: make(chan struct{}, 1)}
	s.talkSession = l.t.session(s.later)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened++
	id := fmt.Sprintf("%s-%d", l.name, l.opened)
	l.sessions[id] = s
	w.Header().Set(mcp.HeaderSession, id)
	return s
}

// later queues a message for the session's GET stream.
func (s *httpSession) later(m mcp.Message) {
	s.mu.Lock()
	s.waiting = append(s.waiting, m)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// stream serves the session's GET stream, which sends messages outside requests.
func (s *httpSession) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	p := &postReply{w: w, stream: true}
	_ = http.NewResponseController(w).Flush()
	for {
		s.mu.Lock()
		waiting := s.waiting
		s.waiting = nil
		s.mu.Unlock()
		for _, m := range waiting {
			p.say(m)
		}
		select {
		case <-s.wake:
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}
