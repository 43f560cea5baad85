package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An exchange is one POST and its answer. Whether that is one JSON object or a stream of events is open until the first
// thing is said: the answer makes it an object, anything before it, or a long silence, makes it a stream.
type exchange struct {
	d *door
	w http.ResponseWriter
	r *http.Request
	// json and stream say what the client takes.
	json, stream bool

	mu sync.Mutex
	// out is the stream, nil before there is one; ran is closed when all of it was written.
	out *outbox
	ran chan struct{}
	// timer makes a stream of it after a long silence.
	timer *time.Timer
	over  bool
	// session is set with the answer to initialize.
	session string
}

func newExchange(d *door, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{d: d, w: w, r: r}
	x.json, x.stream = accepts(r)
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
		if !x.over && x.out == nil {
			x.begin()
			_ = x.out.put([]byte(wire.Comment), false) // it is for show
		}
	})
}

// begin makes the answer a stream. The lock is held.
func (x *exchange) begin() {
	streamHeaders(x.w)
	if x.session != "" {
		x.w.Header().Set(wire.HeaderSession, x.session)
	}
	x.out, x.ran = newOutbox(), make(chan struct{})
	write := eventWriter(x.w)
	out, ran := x.out, x.ran
	go func() {
		defer close(ran)
		out.run(write, x.d.s.o.KeepAlive, func() error { return write([]byte(wire.Comment)) })
	}()
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
	if x.over || x.r.Context().Err() != nil {
		x.mu.Unlock()
		return errGone
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
	out := x.out
	x.mu.Unlock()
	return out.put(event(message), must)
}

func (x *exchange) gone() <-chan struct{} { return x.r.Context().Done() }

// answer ends the exchange with a response. The status counts where nothing was said before. What was cancelled is
// answered too, since an HTTP request must be.
func (x *exchange) answer(id json.RawMessage, status int, r reply) {
	if r.isNone() && id != nil {
		r = cancelled()
	}
	out, ok := x.last(status)
	switch {
	case !ok:
	case out != nil && !r.isNone():
		_ = out.put(event(r.line(id)), true) // gone is gone
	case out != nil:
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
	out, ok := x.last(http.StatusOK)
	switch {
	case !ok:
	case out != nil:
		for _, line := range lines {
			_ = out.put(event(line), true) // gone is gone
		}
	case len(lines) == 0:
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.object(http.StatusOK, joinLines(lines))
	}
	x.close()
}

// last lets nobody say anything more but its caller: on the stream, where there is one or the client takes nothing else.
// It says false where the exchange was over before.
func (x *exchange) last(status int) (*outbox, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return nil, false
	}
	if !x.json && x.out == nil && status == http.StatusOK {
		x.begin()
	}
	x.over = true
	return x.out, true
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
	if out != nil {
		out.close()
		<-ran
	}
}
