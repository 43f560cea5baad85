package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A postExchange is one POST request and its HTTP response. Usually the HTTP response is the JSON object of the answer.
// If another message is sent before the answer, or the answer takes long, the HTTP response is an event stream.
type postExchange struct {
	handler *httpHandler
	w       http.ResponseWriter
	r       *http.Request
	// auth is the authenticated sender of the request.
	auth *authenticatedRequest
	// json and stream report which content types the client accepts.
	json, stream bool

	// ofSession is the session of the request; nil for a stateless client, and before initialize has opened the
	// session.
	ofSession *session

	mu sync.Mutex
	// out writes the stream; nil before the stream begins. written is closed when out has written everything.
	out     *outbox
	written chan struct{}
	// events is the stream in the session's event log. The client can resume it after a lost connection. It is nil
	// without a session. stopLostWatch stops the detection of a lost connection.
	events        *eventStream
	stopLostWatch func() bool
	// timer begins an event stream if the answer takes long.
	timer *time.Timer
	over  bool
	// newSessionID is the id of the new session; set if initialize was successful.
	newSessionID string
}

func newPostExchange(d *httpHandler, w http.ResponseWriter, r *http.Request, v *authenticatedRequest) *postExchange {
	x := &postExchange{handler: d, w: w, r: r, auth: v}
	x.json, x.stream = acceptedTypes(r)
	return x
}

// jsonType and streamType are values of the header Content-Type. They are shared by all responses, to avoid
// allocations; net/http does not change them.
var (
	jsonType   = []string{"application/json"}
	streamType = []string{"text/event-stream"}
)

// startKeepAlive starts a timer. If there is no answer within the time after, the HTTP response becomes an event stream
// that begins with a comment. This shows the client that the connection works.
func (x *postExchange) startKeepAlive(after time.Duration) {
	if !x.stream {
		return
	}
	x.timer = time.AfterFunc(after, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.over && x.out == nil && x.r.Context().Err() == nil {
			x.beginStream()
			_ = x.out.put([]byte(mcp.SSEComment), false) // an error does not matter
		}
	})
}

// beginStream makes the response an event stream. The caller must hold the lock.
func (x *postExchange) beginStream() {
	streamHeaders(x.w)
	if x.newSessionID != "" {
		x.w.Header().Set(mcp.HeaderSession, x.newSessionID)
	}
	x.out, x.written = newOutbox(), make(chan struct{})
	if x.ofSession != nil {
		t, out := x.ofSession.events.openStream(x.out), x.out
		x.events = t
		x.stopLostWatch = context.AfterFunc(x.r.Context(), func() { t.connectionLost(out) })
	}
	go x.write(x.out, x.events, x.written)
}

// write writes the stream to the connection until the stream ends or continues on another connection.
func (x *postExchange) write(out *outbox, t *eventStream, ran chan<- struct{}) {
	defer close(ran)
	write := eventWriter(x.w)
	whole := out.run(write, x.handler.s.o.KeepAlive, func() error { return write([]byte(mcp.SSEComment)) })
	switch {
	case t == nil:
	case !whole:
		t.connectionLost(out)
	case !t.outboxWritten(out):
		closeConnection(x.w)
	}
}

func streamHeaders(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = streamType
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// eventWriter returns a function that writes bytes to w and flushes them. If the client does not read, the function
// returns an error after writeTime.
func eventWriter(w http.ResponseWriter) func([]byte) error {
	rc := http.NewResponseController(w)
	return func(b []byte) error {
		// A writer without deadlines is accepted: its server must limit the time.
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

// send sends a message before the answer. See the interface sender.
func (x *postExchange) send(message []byte, must bool) error {
	x.mu.Lock()
	if x.over || x.events == nil && x.r.Context().Err() != nil {
		x.mu.Unlock()
		return errCallerGone
	}
	if !x.stream {
		x.mu.Unlock()
		if must {
			return errors.New("the client takes no stream")
		}
		return nil
	}
	if x.out == nil {
		x.beginStream()
	}
	x.mu.Unlock()
	return x.putMessage(message, must)
}

// putMessage adds a message to the stream, which must have begun.
func (x *postExchange) putMessage(message []byte, must bool) error {
	if x.events != nil {
		return x.events.send(message, must)
	}
	return x.out.put(eventFrame(message), must)
}

// done returns a channel that is closed when the client has disconnected; nil if the client can resume the stream.
func (x *postExchange) done() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.events != nil && !x.over {
		return nil
	}
	return x.r.Context().Done()
}

// poll asks the client to disconnect and to reconnect after a delay, if its protocol allows that. If no event stream
// has begun, poll begins one, sends the delay and closes the connection. If the client has resumed the stream on
// another connection, poll does the same there. If the stream is on the connection of this request, poll does nothing,
// because closing that connection could break other requests on it.
func (x *postExchange) poll(after time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	able := x.stream && x.ofSession != nil && x.ofSession.events.canPrime() && x.r.ProtoMajor == 1 &&
		x.r.ProtoMinor == 1
	switch {
	case !able || x.over || x.r.Context().Err() != nil && x.events == nil:
	case x.events == nil:
		x.w.Header().Set("Connection", "close")
		x.beginStream()
		x.events.disconnect(after, nil)
	default:
		x.events.disconnect(after, x.out)
	}
}

// respond ends the exchange with the response r. status is the HTTP status; it is ignored if an event stream has begun.
// A cancelled request gets a response too, because HTTP requires one.
func (x *postExchange) respond(id json.RawMessage, status int, r reply) {
	if r.isNone() && id != nil {
		r = cancelledReply()
	}
	streams, ok := x.beginLast(status)
	switch {
	case !ok:
	case streams && !r.isNone():
		_ = x.putMessage(r.line(id), true) // an error means that the client is gone
	case streams:
	case r.isNone():
		x.w.WriteHeader(http.StatusAccepted)
	default:
		parts := r.parts(id)
		x.writeJSON(status, parts[:]...)
	}
	x.close()
}

// respondBatch ends the exchange with the encoded responses of a batch. If there are no responses, because the batch
// contains only notifications, the status is 202.
func (x *postExchange) respondBatch(lines [][]byte) {
	streams, ok := x.beginLast(http.StatusOK)
	switch {
	case !ok:
	case streams:
		for _, line := range lines {
			_ = x.putMessage(line, true) // an error means that the client is gone
		}
	case len(lines) == 0:
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.writeJSON(http.StatusOK, joinLines(lines))
	}
	x.close()
}

// beginLast marks the exchange as over, so that only the calling method writes the response. streams reports whether
// the response is an event stream: a stream has begun, or the client accepts no JSON. ok is false if the exchange was
// already over.
func (x *postExchange) beginLast(status int) (streams, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false, false
	}
	if !x.json && x.out == nil && status == http.StatusOK {
		x.beginStream()
	}
	x.over = true
	return x.out != nil, true
}

// eventFrame returns a message as an event without an id.
func eventFrame(message []byte) []byte {
	return mcp.AppendSSEEvent(make([]byte, 0, len(message)+8), mcp.SSEEvent{Data: message, Retry: -1})
}

// writeJSON writes a JSON response, which is the concatenation of parts.
func (x *postExchange) writeJSON(status int, parts ...[]byte) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	h := x.w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(size)}
	if x.newSessionID != "" {
		h.Set(mcp.HeaderSession, x.newSessionID)
	}
	x.w.WriteHeader(status)
	const large = 32 << 10 // a smaller response fits into the socket's buffer and needs no deadline
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

// takeOverStream begins an event stream that only its caller writes. It returns a function that writes bytes and
// flushes them.
func (x *postExchange) takeOverStream() func([]byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	streamHeaders(x.w)
	return eventWriter(x.w)
}

// respondAccepted ends the exchange with the status 202 and without a body.
func (x *postExchange) respondAccepted() { x.respond(nil, http.StatusAccepted, reply{}) }

// close ends the exchange. If an event stream has begun, close waits until the stream is written. It may be called more
// than once.
func (x *postExchange) close() {
	x.mu.Lock()
	x.over = true
	out, ran := x.out, x.written
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Unlock()
	if out == nil {
		return
	}
	if x.events != nil {
		x.events.end()
	}
	out.close()
	<-ran
	if x.stopLostWatch != nil {
		x.stopLostWatch()
	}
}
