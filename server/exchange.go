package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/server/head"
	"github.com/drawbridge-mcp/drawbridge/server/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An exchange is one POST and its answer. Whether that is one JSON object or a stream of events is open until the first
// thing is said: the answer makes it an object, anything before it, or a long silence, makes it a stream.
type exchange struct {
	d *door
	w http.ResponseWriter
	r *http.Request
	// visit is who sent it.
	visit *visit
	// json and stream say what the client takes.
	json, stream bool

	// of is the session whose request it is; nil for a stateless client, and before there is a session.
	of *session

	mu sync.Mutex
	// out writes the stream, nil before there is one; ran is closed when all of it was written.
	out *trail.Outbox
	ran chan struct{}
	// trail is the stream as a session keeps it: it outlives the connection that out writes. Nil where none is kept.
	// deafen has it not be told any more that the connection is lost.
	trail  *trail.Trail
	deafen func() bool
	// timer makes a stream of it after a long silence.
	timer *time.Timer
	over  bool
	// session is set with the answer to initialize.
	session string
}

func newExchange(d *door, w http.ResponseWriter, r *http.Request, v *visit) *exchange {
	x := &exchange{d: d, w: w, r: r, visit: v}
	x.json, x.stream = head.Accepts(r)
	return x
}

// These are the values of headers that are set on every answer; net/http does not change them.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
)

// alive has the exchange show that it is alive after a silence.
func (x *exchange) alive(after time.Duration) {
	if !x.stream {
		return
	}
	x.timer = time.AfterFunc(after, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.over && x.out == nil && x.r.Context().Err() == nil {
			x.begin()
			_ = x.out.Put([]byte(wire.Comment), false) // it is for show
		}
	})
}

// begin makes the answer a stream. The lock is held.
func (x *exchange) begin() {
	streamHeaders(x.w)
	if x.session != "" {
		x.w.Header().Set(wire.HeaderSession, x.session)
	}
	x.out, x.ran = trail.NewOutbox(), make(chan struct{})
	if x.of != nil {
		t, out := x.of.trails.Open(x.out), x.out
		x.trail = t
		x.deafen = context.AfterFunc(x.r.Context(), func() { t.Lost(out) })
	}
	go x.write(x.out, x.trail, x.ran)
}

// write writes the stream, until it ends or goes on elsewhere.
func (x *exchange) write(out *trail.Outbox, t *trail.Trail, ran chan<- struct{}) {
	defer close(ran)
	write := eventWriter(x.w)
	whole := out.Run(write, x.d.s.o.KeepAlive, func() error { return write([]byte(wire.Comment)) })
	switch {
	case t == nil:
	case !whole:
		t.Lost(out)
	case !t.Wrote(out):
		hangUp(x.w)
	}
}

func streamHeaders(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = streamType
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// eventWriter gives a function that writes and flushes, and is not stuck in a client that does not read.
func eventWriter(w http.ResponseWriter) func([]byte) error {
	rc := http.NewResponseController(w)
	return func(b []byte) error {
		// Not every writer has deadlines; its server then knows better.
		if err := rc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if err := rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		_ = rc.SetWriteDeadline(time.Time{})
		return nil
	}
}

// say sends a message ahead of the answer. See voice.
func (x *exchange) say(message []byte, must bool) error {
	x.mu.Lock()
	if x.over || x.trail == nil && x.r.Context().Err() != nil {
		x.mu.Unlock()
		return trail.ErrGone
	}
	if !x.stream {
		x.mu.Unlock()
		if must {
			return errors.New("the client takes no stream")
		}
		return nil
	}
	if x.out == nil {
		x.begin()
	}
	x.mu.Unlock()
	return x.put(message, must)
}

// put sends a message on the stream.
func (x *exchange) put(message []byte, must bool) error {
	if x.trail != nil {
		return x.trail.Say(message, must)
	}
	return x.out.Put(event(message), must)
}

// gone is never closed for a client that may come back to the stream.
func (x *exchange) gone() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.trail != nil && !x.over {
		return nil
	}
	return x.r.Context().Done()
}

// poll has the client hang up and come back for the rest after that time, if it is one that does. A stream that has begun
// goes on, until the client comes back by itself: its connection may be used for other requests as soon as the stream ends,
// and would break them off if it was closed in the midst of our work without a word before.
func (x *exchange) poll(after time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	able := x.stream && x.of != nil && x.of.trails.Primes() && x.r.ProtoMajor == 1 && x.r.ProtoMinor == 1
	switch {
	case !able || x.over || x.r.Context().Err() != nil && x.trail == nil:
	case x.trail == nil:
		x.w.Header().Set("Connection", "close")
		x.begin()
		x.trail.Leave(after, nil)
	default:
		x.trail.Leave(after, x.out)
	}
}

// answer ends the exchange with a response. The status counts where nothing was said before. What was cancelled is
// answered too, since an HTTP request must be.
func (x *exchange) answer(id json.RawMessage, status int, r reply) {
	if r.isNone() && id != nil {
		r = cancelled()
	}
	streams, ok := x.last(status)
	switch {
	case !ok:
	case streams && !r.isNone():
		_ = x.put(r.line(id), true) // gone is gone
	case streams:
	case r.isNone():
		x.w.WriteHeader(http.StatusAccepted)
	default:
		parts := r.parts(id)
		x.object(status, parts[:]...)
	}
	x.close()
}

// answerAll ends the exchange with the responses of a batch, each a line; with none where there were only notifications.
func (x *exchange) answerAll(lines [][]byte) {
	streams, ok := x.last(http.StatusOK)
	switch {
	case !ok:
	case streams:
		for _, line := range lines {
			_ = x.put(line, true) // gone is gone
		}
	case len(lines) == 0:
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.object(http.StatusOK, joinLines(lines))
	}
	x.close()
}

// last lets nobody say anything more but its caller: on the stream, where there is one or the client takes nothing else.
// It says false, the second time, where the exchange was over before.
func (x *exchange) last(status int) (streams, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false, false
	}
	if !x.json && x.out == nil && status == http.StatusOK {
		x.begin()
	}
	x.over = true
	return x.out != nil, true
}

// event frames a message for a stream.
func event(message []byte) []byte {
	return wire.AppendEvent(make([]byte, 0, len(message)+8), wire.Event{Data: message, Retry: -1})
}

// object writes one JSON value.
func (x *exchange) object(status int, parts ...[]byte) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	h := x.w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(size)}
	if x.session != "" {
		h.Set(wire.HeaderSession, x.session)
	}
	x.w.WriteHeader(status)
	const large = 32 << 10 // what fits into a socket's buffer needs no deadline
	if size > large {
		rc := http.NewResponseController(x.w)
		_ = rc.SetWriteDeadline(time.Now().Add(2 * writeTime)) // see eventWriter
		defer func() {
			_ = rc.Flush()
			_ = rc.SetWriteDeadline(time.Time{})
		}()
	}
	for _, p := range parts {
		if len(p) > 0 {
			if _, err := x.w.Write(p); err != nil {
				return // the client is gone
			}
		}
	}
}

// direct makes the answer a stream that nobody writes but the caller, and gives what writes and flushes it.
func (x *exchange) direct() func([]byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	streamHeaders(x.w)
	return eventWriter(x.w)
}

// accepted ends the exchange: there is nothing to say.
func (x *exchange) accepted() { x.answer(nil, http.StatusAccepted, reply{}) }

// close ends a stream and waits until it is written. It may be called again.
func (x *exchange) close() {
	x.mu.Lock()
	x.over = true
	out, ran := x.out, x.ran
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Unlock()
	if out == nil {
		return
	}
	if x.trail != nil {
		x.trail.End()
	}
	out.Close()
	<-ran
	if x.deafen != nil {
		x.deafen()
	}
}
