package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// Limits of the events that are stored for stateful clients that lose their connection.
const (
	// maxKeptBytes and maxKeptEvents are the maximum size and number of the events that are stored for one session.
	// maxKeptBytesAll is the maximum size for all sessions. If a maximum is exceeded, the oldest events are dropped.
	// Events of completely written streams are dropped first, then optional events, which may be lost, such as
	// notifications, then the others.
	maxKeptBytes    = 4 << 20
	maxKeptEvents   = 1024
	maxKeptBytesAll = 64 << 20
	// eventRetention is how long optional events, and the events of completely written streams, are stored. This is
	// sufficient, because a client that notices a dead connection reconnects within seconds.
	eventRetention = time.Minute
	// reconnectDelay is the delay that clients are asked to wait before they reconnect after a lost connection.
	reconnectDelay = time.Second
)

// An eventLog stores the event streams of one session, so that clients can resume them on new connections. Create it
// with newEventLog. It allocates no memory before the first stream. Its methods may be called from several goroutines.
type eventLog struct {
	// session is the id of the session. total is the number of stored bytes of all sessions. primes reports whether the
	// client accepts empty events: clients of versions before 2025-11-25 treat them as invalid messages.
	session string
	total   *atomic.Int64
	primes  bool

	mu sync.Mutex
	// tag is the beginning of the ids of all events of this session. Each session has a different tag.
	tag string
	// streams maps a number to its stream. It holds the open streams, and the ended streams that still have stored
	// events. Stream 0 is the session's own stream, which belongs to no request. streamCount is the highest number.
	streams     map[int]*eventStream
	streamCount int
	events      []keptEvent
	eventBytes  int
	// tidiedAt is the time when expired events were last removed.
	tidiedAt time.Time
	ended    bool
}

// newEventLog returns the event log of a session. maxKeptBytesAll limits the events of all sessions with the same
// total. primes reports whether the client accepts empty events, which are part of the protocol since 2025-11-25.
func newEventLog(session string, total *atomic.Int64, primes bool) *eventLog {
	return &eventLog{session: session, total: total, primes: primes}
}

// canPrime reports whether the client accepts empty events. Only such a client can be asked to disconnect and
// reconnect.
func (k *eventLog) canPrime() bool { return k.primes }

// A keptEvent is a stored event of a stream. frame is the event, encoded as it is sent. mustArrive is false for an
// optional event.
type keptEvent struct {
	stream     *eventStream
	event      int
	frame      []byte
	mustArrive bool
	when       time.Time
}

// An eventStream is one stream of events, independent of the connection over which it is sent. Its events are numbered
// from 0.
type eventStream struct {
	log    *eventLog
	number int
	// lastEvent is the number of the stream's last event, and kept the number of its stored events. outbox writes to
	// the stream's current connection; nil without a connection. The mutex of log guards these fields.
	lastEvent, kept int
	outbox          *outbox
	over            bool
	// connections is the number of connections that the stream has had; used only for the session's own stream.
	connections int
	// wholeWritten is set if the stream has ended and all its events were written to a connection.
	wholeWritten bool
}

// openStream creates the stream for the response to a request. out writes the stream to the connection of the request.
func (k *eventLog) openStream(out *outbox) *eventStream {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.streamCount++
	t := k.addStream(k.streamCount)
	t.outbox = out
	if k.primes {
		out.putNoWait(t.primeEvent(), true)
	}
	return t
}

// addStream creates a stream. The caller must hold the lock.
func (k *eventLog) addStream(number int) *eventStream {
	if k.tag == "" {
		k.tag = sessionTag(k.session)
		k.streams = map[int]*eventStream{}
	}
	t := &eventStream{log: k, number: number, lastEvent: -1}
	k.streams[number] = t
	return t
}

// primeEvent returns an empty event. From its id, the client can resume the stream before it has received any message.
// The caller must hold the lock.
func (t *eventStream) primeEvent() []byte {
	t.lastEvent++
	return mcp.AppendSSEEvent(nil, mcp.SSEEvent{ID: t.eventID(t.lastEvent), Data: []byte{}, Retry: reconnectDelay})
}

// nextEvent returns message, encoded as the next event of the stream. The caller must hold the lock.
func (t *eventStream) nextEvent(message []byte) []byte {
	t.lastEvent++
	return t.encodeEvent(message, t.lastEvent)
}

func (t *eventStream) encodeEvent(message []byte, event int) []byte {
	return mcp.AppendSSEEvent(make([]byte, 0, len(message)+40), mcp.SSEEvent{ID: t.eventID(event),
		Data: message, Retry: -1})
}

func (t *eventStream) eventID(event int) string {
	return eventPosition{t.number, event}.encodeID(t.log.tag)
}

// send sends a message to the client, or stores it until the client reconnects. If must is set, send waits while the
// client is too slow to read; otherwise the message may be dropped. The error is errCallerGone for a stream that has
// ended.
func (t *eventStream) send(message []byte, must bool) error {
	k := t.log
	k.mu.Lock()
	if t.over || k.ended && !must {
		k.mu.Unlock()
		return errCallerGone
	}
	frame, out := t.nextEvent(message), t.outbox
	if out == nil || out.putNoWait(frame, must) {
		k.keepEvent(t, message, frame, must)
	}
	k.mu.Unlock()
	if must && out != nil {
		out.awaitRoom()
	}
	return nil
}

// end ends the stream, so that no more events are sent on it.
func (t *eventStream) end() {
	k := t.log
	k.mu.Lock()
	defer k.mu.Unlock()
	t.over = true
	if t.outbox != nil {
		t.outbox.close()
	}
	k.forgetOverStream(t)
}

// disconnect closes the stream's connection but not the stream, and asks the client to reconnect after a delay. The
// connection of the outbox but is not closed: if it is the stream's current connection, disconnect does nothing. but
// may be nil.
func (t *eventStream) disconnect(after time.Duration, but *outbox) {
	k := t.log
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.over || t.outbox == nil || t.outbox == but {
		return
	}
	t.outbox.putNoWait(mcp.AppendSSEEvent(nil, mcp.SSEEvent{Retry: after}), true)
	t.outbox.close()
	t.outbox = nil
}

// connectionLost ends the use of a connection that was lost; out is its outbox. If the stream already has another
// connection, it continues on that connection.
func (t *eventStream) connectionLost(out *outbox) {
	k := t.log
	k.mu.Lock()
	if t.outbox == out {
		t.outbox = nil
		k.forgetOverStream(t)
	}
	k.mu.Unlock()
	out.fail()
}

// outboxWritten is called when the outbox out has written all its output. It reports whether the stream has ended and
// is now completely written.
func (t *eventStream) outboxWritten(out *outbox) (end bool) {
	k := t.log
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.outbox != out || !t.over {
		return false
	}
	t.outbox, t.wholeWritten = nil, true
	k.forgetOverStream(t)
	return true
}

// resumeStream continues a stream on a new connection, which replaces the previous one. The client receives the events
// after the position at. resumeStream returns the stream and its new outbox, or nil if the stream is unknown, or has
// ended and has no further events.
func (k *eventLog) resumeStream(at eventPosition) (*eventStream, *outbox) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.streams[at.stream]
	if t == nil {
		return nil, nil
	}
	rest := k.framesAfter(t, at.event)
	if t.over && len(rest) == 0 {
		return nil, nil
	}
	if t.outbox != nil {
		t.outbox.fail()
	}
	t.outbox, t.wholeWritten = newOutbox(), false
	if len(rest) == 0 && k.primes {
		rest = t.primeEvent() // the client can resume after this event too
	}
	t.outbox.putNoWait(rest, true)
	if t.over {
		t.outbox.close()
	}
	return t, t.outbox
}

// framesAfter returns the stored events of a stream that follow the given event. It drops the earlier events, because
// the client has received them. The caller must hold the lock.
func (k *eventLog) framesAfter(t *eventStream, event int) (frames []byte) {
	k.forgetEvents(func(e keptEvent) bool { return e.stream == t && e.event <= event })
	for _, e := range k.events {
		if e.stream == t {
			frames = append(frames, e.frame...)
		}
	}
	return frames
}

// A sessionStream is a connection of the session's own stream, whose messages come from a watcher.
type sessionStream struct {
	*eventStream
	connection int
	// first is written to the connection before the first message.
	first []byte
}

// openSessionStream opens a connection of the session's own stream. If back is set, the client resumes the stream after
// the event at. Otherwise the stored events of the stream are dropped.
func (k *eventLog) openSessionStream(at eventPosition, back bool) sessionStream {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.streams[0]
	if t == nil {
		t = k.addStream(0)
	}
	t.connections++
	if !back {
		at.event = t.lastEvent
	}
	first := k.framesAfter(t, at.event)
	switch {
	case len(first) > 0:
	case k.primes:
		first = t.primeEvent()
	default:
		first = []byte(mcp.SSEComment) // the comment shows the client that the stream is open
	}
	return sessionStream{t, t.connections, first}
}

// addEvent stores a message as an event of the stream and returns the encoded event. If the stream has a newer
// connection, addEvent returns nil, and the message must be written to the newer connection.
func (o sessionStream) addEvent(message []byte) []byte {
	k := o.log
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.connection != o.connections {
		return nil
	}
	frame := o.nextEvent(message)
	k.keepEvent(o.eventStream, message, frame, rawjson.Get(message, "id") != nil)
	return frame
}

// hasEvent reports whether this session has sent an event at the position at.
func (k *eventLog) hasEvent(at eventPosition) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.streams[at.stream]
	return at.stream <= k.streamCount && (t == nil || at.event <= t.lastEvent)
}

// parsePosition returns the position of the event with an id. It returns false if the id is invalid or does not belong
// to an event of this session.
func (k *eventLog) parsePosition(id string) (eventPosition, bool) {
	at, ok := parseEventID(sessionTag(k.session), id)
	return at, ok && k.hasEvent(at)
}

// keepEvent stores an event. If a response is larger than maxKeptBytes, keepEvent stores an error response instead;
// other messages of that size are dropped. The caller must hold the lock.
func (k *eventLog) keepEvent(t *eventStream, message, frame []byte, must bool) {
	if k.ended {
		return
	}
	if len(frame) > maxKeptBytes {
		id := rawjson.Get(message, "id")
		if id == nil || rawjson.Get(message, "method") != nil {
			return
		}
		answer := mcp.Message{ID: id, Error: mcp.NewErrorObject(mcp.CodeInternal,
			"The answer was too large to be kept for a client that lost its connection", nil)}
		frame = t.encodeEvent(answer.Append(nil), t.lastEvent)
	}
	now := time.Now()
	k.forgetOldEvents(now)
	k.events = append(k.events, keptEvent{t, t.lastEvent, frame, must, now})
	t.kept++
	k.eventBytes += len(frame)
	k.total.Add(int64(len(frame)))
	for len(k.events) > 0 && (len(k.events) > maxKeptEvents || k.eventBytes > maxKeptBytes ||
		k.total.Load() > maxKeptBytesAll) {
		k.dropEvent(k.leastNeeded())
	}
}

// leastNeeded returns the index of the event to drop first; see maxKeptBytes for the order. The caller must hold the
// lock.
func (k *eventLog) leastNeeded() int {
	if i := slices.IndexFunc(k.events, func(e keptEvent) bool { return e.stream.wholeWritten }); i >= 0 {
		return i
	}
	return max(0, slices.IndexFunc(k.events, func(e keptEvent) bool { return !e.mustArrive }))
}

// dropEvent removes the event with the index i. The caller must hold the lock.
func (k *eventLog) dropEvent(i int) {
	e := k.events[i]
	k.events = slices.Delete(k.events, i, i+1)
	k.accountDropped(e)
}

func (k *eventLog) accountDropped(e keptEvent) {
	e.stream.kept--
	k.eventBytes -= len(e.frame)
	k.total.Add(int64(-len(e.frame)))
	k.forgetOverStream(e.stream)
}

// forgetEvents drops the events for which f returns true. The caller must hold the lock.
func (k *eventLog) forgetEvents(f func(keptEvent) bool) {
	k.events = slices.DeleteFunc(k.events, func(e keptEvent) bool {
		if !f(e) {
			return false
		}
		k.accountDropped(e)
		return true
	})
	if len(k.events) == 0 {
		k.events = nil // free the memory: most sessions are inactive for a long time
	}
}

// forgetOverStream removes a stream that is over, has no connection and has no stored events. The caller must hold the
// lock.
func (k *eventLog) forgetOverStream(t *eventStream) {
	if t.over && t.kept == 0 && t.outbox == nil {
		delete(k.streams, t.number)
	}
}

// forgetOldEvents drops expired events, at most once per eventRetention. The caller must hold the lock.
func (k *eventLog) forgetOldEvents(now time.Time) {
	if now.Sub(k.tidiedAt) < eventRetention {
		return
	}
	k.tidiedAt = now
	k.forgetEvents(func(e keptEvent) bool {
		return (e.stream.wholeWritten || !e.mustArrive) && now.Sub(e.when) > eventRetention
	})
}

// sweep drops expired events. See forgetOldEvents.
func (k *eventLog) sweep(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetOldEvents(now)
}

// close drops all events and stores no further ones.
func (k *eventLog) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.forgetEvents(func(keptEvent) bool { return true })
}
