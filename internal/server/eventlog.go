package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// Limits of the events kept for stateful clients that lose their connection.
const (
	// maxKeptBytes and maxKeptEvents bound the events kept for one session, maxKeptBytesAll those of all sessions.
	// Beyond that, events are dropped, the oldest first: those that were certainly written, then optional ones, then
	// the rest.
	maxKeptBytes    = 4 << 20
	maxKeptEvents   = 1024
	maxKeptBytesAll = 64 << 20
	// eventRetention is how long events are kept that were certainly written or are optional. A client that notices a
	// dead connection comes back within seconds.
	eventRetention = time.Minute
	// reconnectDelay is the time after which a client should reconnect if it lost its connection or was asked to
	// reconnect.
	reconnectDelay = time.Second
)

// An eventLog keeps the event streams of one session beyond their connections. It is made by newEventLog and allocates
// nothing before the first stream. Its methods may be called from several goroutines.
type eventLog struct {
	// session is the session's id; total counts the bytes kept in all sessions. primes reports that the client accepts
	// empty events: revisions before 2025-11-25 take them for invalid messages.
	session string
	total   *atomic.Int64
	primes  bool

	mu sync.Mutex
	// tag is part of the ids of this session's events. It differs between sessions.
	tag string
	// streams holds the open streams, and ended ones with kept events, by number. Stream 0 is the session's own, which
	// belongs to no request. count is the highest number.
	streams     map[int]*eventStream
	streamCount int
	events      []keptEvent
	eventBytes  int
	// tidiedAt is when expired events were last removed.
	tidiedAt time.Time
	ended    bool
}

// newEventLog returns the event log of a session. Sessions with the same total share its bound. primes reports that the
// client accepts empty events, which are part of the protocol since 2025-11-25.
func newEventLog(session string, total *atomic.Int64, primes bool) *eventLog {
	return &eventLog{session: session, total: total, primes: primes}
}

// canPrime reports whether the client accepts empty events, and so can be asked to reconnect.
func (k *eventLog) canPrime() bool { return k.primes }

// A keptEvent is an event in the form in which it is sent.
type keptEvent struct {
	stream     *eventStream
	event      int
	frame      []byte
	mustArrive bool
	when       time.Time
}

// A eventStream is one stream, whichever connection it is on. Its events are numbered from 0.
type eventStream struct {
	log    *eventLog
	number int
	// lastEvent is the number of the last event, kept the number of events kept, and out the writer of the connection;
	// nil while there is none. The log's mutex guards these fields.
	lastEvent, kept int
	outbox          *outbox
	over            bool
	// connections counts the connections of the session's own stream.
	connections int
	// wholeWritten reports that the stream ended and was written completely.
	wholeWritten bool
}

// openStream creates the stream of a request on a connection.
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

// addStream creates a stream. The caller holds the lock.
func (k *eventLog) addStream(number int) *eventStream {
	if k.tag == "" {
		k.tag = sessionTag(k.session)
		k.streams = map[int]*eventStream{}
	}
	t := &eventStream{log: k, number: number, lastEvent: -1}
	k.streams[number] = t
	return t
}

// primeEvent returns an empty event, whose id lets the client resume the stream. The caller holds the lock.
func (t *eventStream) primeEvent() []byte {
	t.lastEvent++
	return mcp.AppendSSEEvent(nil, mcp.SSEEvent{ID: t.eventID(t.lastEvent), Data: []byte{}, Retry: reconnectDelay})
}

// nextEvent creates the next event of the stream. The caller holds the lock.
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

// send sends a message to the client, or keeps it until the client reconnects. The error is errCallerGone for a stream
// that has ended.
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

// end ends the stream: no more events follow.
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

// disconnect ends the connection but not the stream: it asks the client to reconnect after a delay. It does nothing to
// the connection that writes to but, which may be nil.
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

// connectionLost records the loss of a connection, which the stream may have left already.
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

// outboxWritten records that all output of a connection was written. It reports whether that was the end of the stream.
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

// resumeStream continues a stream after an event on a new connection, which replaces the last one. It returns nil if
// the stream is over or unknown.
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
		rest = t.primeEvent() // lets the client resume from here too
	}
	t.outbox.putNoWait(rest, true)
	if t.over {
		t.outbox.close()
	}
	return t, t.outbox
}

// framesAfter returns the kept events of a stream after an event; earlier ones have arrived. The caller holds the lock.
func (k *eventLog) framesAfter(t *eventStream, event int) (frames []byte) {
	k.forgetEvents(func(e keptEvent) bool { return e.stream == t && e.event <= event })
	for _, e := range k.events {
		if e.stream == t {
			frames = append(frames, e.frame...)
		}
	}
	return frames
}

// A sessionStream is a connection of the session's own stream, which takes its messages from a watcher.
type sessionStream struct {
	*eventStream
	connection int
	// first is written before anything else.
	first []byte
}

// openSessionStream begins or resumes the session's own stream. If the client does not resume it, its kept events are
// dropped.
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
		first = []byte(mcp.SSEComment) // shows the client that the stream is open
	}
	return sessionStream{t, t.connections, first}
}

// addEvent keeps a message as an event and returns the event. It returns nil if a newer connection exists, which must
// write the message.
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

// hasEvent reports whether an event was sent in this session.
func (k *eventLog) hasEvent(at eventPosition) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.streams[at.stream]
	return at.stream <= k.streamCount && (t == nil || at.event <= t.lastEvent)
}

// parsePosition parses an event id. It reports false for an id of another session.
func (k *eventLog) parsePosition(id string) (eventPosition, bool) {
	at, ok := parseEventID(sessionTag(k.session), id)
	return at, ok && k.hasEvent(at)
}

// keepEvent keeps an event. A response that is too large is kept as an error that reports this. The caller holds the
// lock.
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

// leastNeeded returns the index of the event that should be dropped first. The caller holds the lock.
func (k *eventLog) leastNeeded() int {
	if i := slices.IndexFunc(k.events, func(e keptEvent) bool { return e.stream.wholeWritten }); i >= 0 {
		return i
	}
	return max(0, slices.IndexFunc(k.events, func(e keptEvent) bool { return !e.mustArrive }))
}

// dropEvent removes an event. The caller holds the lock.
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

// forgetEvents drops the events for which f returns true. The caller holds the lock.
func (k *eventLog) forgetEvents(f func(keptEvent) bool) {
	k.events = slices.DeleteFunc(k.events, func(e keptEvent) bool {
		if !f(e) {
			return false
		}
		k.accountDropped(e)
		return true
	})
	if len(k.events) == 0 {
		k.events = nil // free the memory: most sessions are silent for a long time
	}
}

// forgetOverStream drops a stream that is over, is not being written and has no kept events. The caller holds the lock.
func (k *eventLog) forgetOverStream(t *eventStream) {
	if t.over && t.kept == 0 && t.outbox == nil {
		delete(k.streams, t.number)
	}
}

// forgetOldEvents drops expired events. The caller holds the lock.
func (k *eventLog) forgetOldEvents(now time.Time) {
	if now.Sub(k.tidiedAt) < eventRetention {
		return
	}
	k.tidiedAt = now
	k.forgetEvents(func(e keptEvent) bool {
		return (e.stream.wholeWritten || !e.mustArrive) && now.Sub(e.when) > eventRetention
	})
}

// sweep drops expired events.
func (k *eventLog) sweep(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetOldEvents(now)
}

// close removes all streams and events.
func (k *eventLog) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.forgetEvents(func(keptEvent) bool { return true })
}
