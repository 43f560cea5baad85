package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// What is kept of the streams of stateful clients, for those that lose their connection.
const (
	// maxKept and maxKeptEvents are the most bytes and events that are kept for one session, and maxKeptAll the most
	// bytes for all of them. What is over that is forgotten: first what has surely been written, then what need not
	// arrive, then the rest, each the oldest first.
	maxKept       = 4 << 20
	maxKeptEvents = 1024
	maxKeptAll    = 64 << 20
	// keepTime is how long is kept what has surely been written, or need not arrive. A client that notices that its
	// connection was dead comes back within seconds.
	keepTime = time.Minute
	// pollTime is when clients are to come back that lost their connection, or were told to come back later.
	pollTime = time.Second
)

// Trails are the streams of one session that outlive their connections, and what is kept of them. Nothing is made before
// the first stream.
type trails struct {
	// session is the session's id, total counts what is kept in all sessions. primes says whether the client knows events
	// that are empty: those of revisions before 2025-11-25 take them for broken messages.
	session string
	total   *atomic.Int64
	primes  bool

	mu sync.Mutex
	// tag is in the ids of this session's events, and of no other's.
	tag string
	// all has the streams that go on or of which something is kept, by number. Stream 0 is the session's own, which
	// belongs to no request; count is the number of the last.
	all   map[int]*trail
	count int
	kept  []keptEvent
	size  int
	// tidied is when it was last looked what need not be kept any longer.
	tidied time.Time
	ended  bool
}

// A keptEvent is an event as it goes over the wire.
type keptEvent struct {
	of    *trail
	event int
	frame []byte
	must  bool
	when  time.Time
}

// A trail is one stream, whichever connection it is on. Its events are numbered from 0.
type trail struct {
	in     *trails
	number int
	// last is the last event's number, kept how many events are kept, out what writes to the connection: nil while there
	// is none. All that has a lock is under that of in.
	last, kept int
	out        *outbox
	over       bool
	// connections counts those of the session's own stream.
	connections int
	// written says that the stream is over, and was written to its end.
	written bool
}

// open begins the stream of a request on a connection. The frame is its first event, nil where there is none.
func (k *trails) open(out *outbox) *trail {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count++
	t := k.begin(k.count)
	t.out = out
	if k.primes {
		out.push(t.prime(), true)
	}
	return t
}

// begin makes a stream. The lock is held.
func (k *trails) begin(number int) *trail {
	if k.tag == "" {
		k.tag = tagOf(k.session)
		k.all = map[int]*trail{}
	}
	t := &trail{in: k, number: number, last: -1}
	k.all[number] = t
	return t
}

// prime makes an event that says nothing but where the stream is, from which the client can go on. The lock is held.
func (t *trail) prime() []byte {
	t.last++
	return wire.AppendEvent(nil, wire.Event{ID: t.id(t.last), Data: []byte{}, Retry: pollTime})
}

// next makes the next event. The lock is held.
func (t *trail) next(message []byte) []byte {
	t.last++
	return t.frame(message, t.last)
}

func (t *trail) frame(message []byte, event int) []byte {
	return wire.AppendEvent(make([]byte, 0, len(message)+40), wire.Event{ID: t.id(event), Data: message, Retry: -1})
}

func (t *trail) id(event int) string { return position{t.number, event}.id(t.in.tag) }

// say has the client hear a message, now or when it comes back. See voice.
func (t *trail) say(message []byte, must bool) error {
	k := t.in
	k.mu.Lock()
	if t.over || k.ended && !must {
		k.mu.Unlock()
		return errGone
	}
	frame, out := t.next(message), t.out
	if out == nil || out.push(frame, must) {
		k.keep(t, message, frame, must)
	}
	k.mu.Unlock()
	if must && out != nil {
		out.await()
	}
	return nil
}

// end says that nothing more comes.
func (t *trail) end() {
	k := t.in
	k.mu.Lock()
	defer k.mu.Unlock()
	t.over = true
	if t.out != nil {
		t.out.close()
	}
	k.forgetIfOver(t)
}

// leave ends the connection, not the stream: the client is to come back for the rest after that time. The connection but is
// kept.
func (t *trail) leave(after time.Duration, but *outbox) {
	k := t.in
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.over || t.out == nil || t.out == but {
		return
	}
	t.out.push(wire.AppendEvent(nil, wire.Event{Retry: after}), true)
	t.out.close()
	t.out = nil
}

// lost says that a connection is no more, which was perhaps not the stream's any more.
func (t *trail) lost(out *outbox) {
	k := t.in
	k.mu.Lock()
	if t.out == out {
		t.out = nil
		k.forgetIfOver(t)
	}
	k.mu.Unlock()
	out.fail()
}

// wrote says that all that was put out was written. It says whether that was the stream's end.
func (t *trail) wrote(out *outbox) (end bool) {
	k := t.in
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.out != out || !t.over {
		return false
	}
	t.out, t.written = nil, true
	k.forgetIfOver(t)
	return true
}

// resume goes on with a stream behind an event, on a new connection: the last one is not used any more. It says nil where
// nothing more comes on that stream, or nothing is known of it any more.
func (k *trails) resume(at position) (*trail, *outbox) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.all[at.trail]
	if t == nil {
		return nil, nil
	}
	rest := k.rest(t, at.event)
	if t.over && len(rest) == 0 {
		return nil, nil
	}
	if t.out != nil {
		t.out.fail()
	}
	t.out, t.written = newOutbox(), false
	if len(rest) == 0 && k.primes {
		rest = t.prime() // what is lost now can be gone on from too
	}
	t.out.push(rest, true)
	if t.over {
		t.out.close()
	}
	return t, t.out
}

// rest gives what is kept of a stream behind an event. What is before it has arrived. The lock is held.
func (k *trails) rest(t *trail, event int) (frames []byte) {
	k.forget(func(e keptEvent) bool { return e.of == t && e.event <= event })
	for _, e := range k.kept {
		if e.of == t {
			frames = append(frames, e.frame...)
		}
	}
	return frames
}

// An own is a connection of the session's own stream, whose writer asks a watcher what there is to say.
type own struct {
	*trail
	connection int
	// first is what is to be written before anything else.
	first []byte
}

// own begins or goes on with the session's own stream. Where the client does not come back to it, what was said on it
// before is forgotten.
func (k *trails) own(at position, back bool) own {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.all[0]
	if t == nil {
		t = k.begin(0)
	}
	t.connections++
	if !back {
		at.event = t.last
	}
	first := k.rest(t, at.event)
	switch {
	case len(first) > 0:
	case k.primes:
		first = t.prime()
	default:
		first = []byte(wire.Comment) // shows the client that it is heard
	}
	return own{t, t.connections, first}
}

// event makes an event of a message, which is kept. It gives nil where there is a newer connection: what it was not told at
// its beginning it must be told now.
func (o own) event(message []byte) []byte {
	k := o.in
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.connection != o.connections {
		return nil
	}
	frame := o.next(message)
	k.keep(o.trail, message, frame, wire.Get(message, "id") != nil)
	return frame
}

// knows says whether an event was sent in this session.
func (k *trails) knows(at position) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.all[at.trail]
	return at.trail <= k.count && (t == nil || at.event <= t.last)
}

// read reads the id of an event. It says false for one that was not sent in this session.
func (k *trails) read(id string) (position, bool) {
	at, ok := readPosition(tagOf(k.session), id)
	return at, ok && k.knows(at)
}

// keep keeps an event. An answer that is too large to be kept is kept as an error that says so. The lock is held.
func (k *trails) keep(t *trail, message, frame []byte, must bool) {
	if k.ended {
		return
	}
	if len(frame) > maxKept {
		id := wire.Get(message, "id")
		if id == nil || wire.Get(message, "method") != nil {
			return
		}
		frame = t.frame(failure(wire.CodeInternal, "The answer was too large to be kept for a client that lost its connection", nil).line(id), t.last)
	}
	now := time.Now()
	k.tidy(now)
	k.kept = append(k.kept, keptEvent{t, t.last, frame, must, now})
	t.kept++
	k.size += len(frame)
	k.total.Add(int64(len(frame)))
	for len(k.kept) > 0 && (len(k.kept) > maxKeptEvents || k.size > maxKept || k.total.Load() > maxKeptAll) {
		k.drop(k.worst())
	}
}

// worst is the index of the event that is needed least. The lock is held.
func (k *trails) worst() int {
	if i := slices.IndexFunc(k.kept, func(e keptEvent) bool { return e.of.written }); i >= 0 {
		return i
	}
	return max(0, slices.IndexFunc(k.kept, func(e keptEvent) bool { return !e.must }))
}

// drop forgets an event. The lock is held.
func (k *trails) drop(i int) {
	e := k.kept[i]
	k.kept = slices.Delete(k.kept, i, i+1)
	k.dropped(e)
}

func (k *trails) dropped(e keptEvent) {
	e.of.kept--
	k.size -= len(e.frame)
	k.total.Add(int64(-len(e.frame)))
	k.forgetIfOver(e.of)
}

// forget forgets the events that f says. The lock is held.
func (k *trails) forget(f func(keptEvent) bool) {
	k.kept = slices.DeleteFunc(k.kept, func(e keptEvent) bool {
		if !f(e) {
			return false
		}
		k.dropped(e)
		return true
	})
	if len(k.kept) == 0 {
		k.kept = nil // most sessions are silent for long
	}
}

// forgetIfOver forgets a stream that is over, when nobody writes it and nothing is kept of it. The lock is held.
func (k *trails) forgetIfOver(t *trail) {
	if t.over && t.kept == 0 && t.out == nil {
		delete(k.all, t.number)
	}
}

// tidy forgets what need not be kept any longer. The lock is held.
func (k *trails) tidy(now time.Time) {
	if now.Sub(k.tidied) < keepTime {
		return
	}
	k.tidied = now
	k.forget(func(e keptEvent) bool { return (e.of.written || !e.must) && now.Sub(e.when) > keepTime })
}

// sweep forgets what need not be kept any longer.
func (k *trails) sweep(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tidy(now)
}

// close forgets everything.
func (k *trails) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.forget(func(keptEvent) bool { return true })
}
