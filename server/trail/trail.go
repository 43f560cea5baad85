package trail

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
//
// They are made by New. Their methods may be called from several goroutines.
type Trails struct {
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
	all   map[int]*Trail
	count int
	kept  []keptEvent
	size  int
	// tidied is when it was last looked what need not be kept any longer.
	tidied time.Time
	ended  bool
}

// New makes the streams of a session. What is kept in all sessions that are given the same total is counted there. primes
// says whether the client knows events that are empty, which it does from 2025-11-25 on.
func New(session string, total *atomic.Int64, primes bool) *Trails {
	return &Trails{session: session, total: total, primes: primes}
}

// Primes says whether the client knows events that are empty, and so can be told to come back.
func (k *Trails) Primes() bool { return k.primes }

// A keptEvent is an event as it goes over the wire.
type keptEvent struct {
	of    *Trail
	event int
	frame []byte
	must  bool
	when  time.Time
}

// A Trail is one stream, whichever connection it is on. Its events are numbered from 0.
type Trail struct {
	in     *Trails
	number int
	// last is the last event's number, kept how many events are kept, out what writes to the connection: nil while there
	// is none. All that has a lock is under that of in.
	last, kept int
	out        *Outbox
	over       bool
	// connections counts those of the session's own stream.
	connections int
	// written says that the stream is over, and was written to its end.
	written bool
}

// Open begins the stream of a request on a connection. The frame is its first event, nil where there is none.
func (k *Trails) Open(out *Outbox) *Trail {
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
func (k *Trails) begin(number int) *Trail {
	if k.tag == "" {
		k.tag = tagOf(k.session)
		k.all = map[int]*Trail{}
	}
	t := &Trail{in: k, number: number, last: -1}
	k.all[number] = t
	return t
}

// prime makes an event that says nothing but where the stream is, from which the client can go on. The lock is held.
func (t *Trail) prime() []byte {
	t.last++
	return wire.AppendEvent(nil, wire.Event{ID: t.id(t.last), Data: []byte{}, Retry: pollTime})
}

// next makes the next event. The lock is held.
func (t *Trail) next(message []byte) []byte {
	t.last++
	return t.frame(message, t.last)
}

func (t *Trail) frame(message []byte, event int) []byte {
	return wire.AppendEvent(make([]byte, 0, len(message)+40), wire.Event{ID: t.id(event), Data: message, Retry: -1})
}

func (t *Trail) id(event int) string { return Position{t.number, event}.id(t.in.tag) }

// Say has the client hear a message, now or when it comes back. The error is ErrGone for a
// stream that is over.
func (t *Trail) Say(message []byte, must bool) error {
	k := t.in
	k.mu.Lock()
	if t.over || k.ended && !must {
		k.mu.Unlock()
		return ErrGone
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

// End says that nothing more comes.
func (t *Trail) End() {
	k := t.in
	k.mu.Lock()
	defer k.mu.Unlock()
	t.over = true
	if t.out != nil {
		t.out.Close()
	}
	k.forgetIfOver(t)
}

// Leave ends the connection, not the stream: the client is to come back for the rest after that time. The connection that but
// writes is kept; nil is none.
func (t *Trail) Leave(after time.Duration, but *Outbox) {
	k := t.in
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.over || t.out == nil || t.out == but {
		return
	}
	t.out.push(wire.AppendEvent(nil, wire.Event{Retry: after}), true)
	t.out.Close()
	t.out = nil
}

// Lost says that a connection is no more, which was perhaps not the stream's any more.
func (t *Trail) Lost(out *Outbox) {
	k := t.in
	k.mu.Lock()
	if t.out == out {
		t.out = nil
		k.forgetIfOver(t)
	}
	k.mu.Unlock()
	out.Fail()
}

// Wrote says that all that was put out was written. It says whether that was the stream's end.
func (t *Trail) Wrote(out *Outbox) (end bool) {
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

// Resume goes on with a stream behind an event, on a new connection: the last one is not used any more. It says nil where
// nothing more comes on that stream, or nothing is known of it any more.
func (k *Trails) Resume(at Position) (*Trail, *Outbox) {
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
		t.out.Fail()
	}
	t.out, t.written = NewOutbox(), false
	if len(rest) == 0 && k.primes {
		rest = t.prime() // what is lost now can be gone on from too
	}
	t.out.push(rest, true)
	if t.over {
		t.out.Close()
	}
	return t, t.out
}

// rest gives what is kept of a stream behind an event. What is before it has arrived. The lock is held.
func (k *Trails) rest(t *Trail, event int) (frames []byte) {
	k.forget(func(e keptEvent) bool { return e.of == t && e.event <= event })
	for _, e := range k.kept {
		if e.of == t {
			frames = append(frames, e.frame...)
		}
	}
	return frames
}

// An Own is a connection of the session's own stream, whose writer asks a watcher what there is to say.
type Own struct {
	*Trail
	connection int
	// First is what is to be written before anything else.
	First []byte
}

// Own begins or goes on with the session's own stream. Where the client does not come back to it, what was said on it
// before is forgotten.
func (k *Trails) Own(at Position, back bool) Own {
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
	return Own{t, t.connections, first}
}

// Event makes an event of a message, which is kept. It gives nil where there is a newer connection: what it was not told at
// its beginning it must be told now.
func (o Own) Event(message []byte) []byte {
	k := o.in
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.connection != o.connections {
		return nil
	}
	frame := o.next(message)
	k.keep(o.Trail, message, frame, wire.Get(message, "id") != nil)
	return frame
}

// knows says whether an event was sent in this session.
func (k *Trails) knows(at Position) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.all[at.trail]
	return at.trail <= k.count && (t == nil || at.event <= t.last)
}

// Read reads the id of an event. It says false for one that was not sent in this session.
func (k *Trails) Read(id string) (Position, bool) {
	at, ok := readPosition(tagOf(k.session), id)
	return at, ok && k.knows(at)
}

// keep keeps an event. An answer that is too large to be kept is kept as an error that says so. The lock is held.
func (k *Trails) keep(t *Trail, message, frame []byte, must bool) {
	if k.ended {
		return
	}
	if len(frame) > maxKept {
		id := wire.Get(message, "id")
		if id == nil || wire.Get(message, "method") != nil {
			return
		}
		answer := wire.Message{ID: id, Error: wire.ErrorObject(wire.CodeInternal, "The answer was too large to be kept for a client that lost its connection", nil)}
		frame = t.frame(answer.Append(nil), t.last)
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
func (k *Trails) worst() int {
	if i := slices.IndexFunc(k.kept, func(e keptEvent) bool { return e.of.written }); i >= 0 {
		return i
	}
	return max(0, slices.IndexFunc(k.kept, func(e keptEvent) bool { return !e.must }))
}

// drop forgets an event. The lock is held.
func (k *Trails) drop(i int) {
	e := k.kept[i]
	k.kept = slices.Delete(k.kept, i, i+1)
	k.dropped(e)
}

func (k *Trails) dropped(e keptEvent) {
	e.of.kept--
	k.size -= len(e.frame)
	k.total.Add(int64(-len(e.frame)))
	k.forgetIfOver(e.of)
}

// forget forgets the events that f says. The lock is held.
func (k *Trails) forget(f func(keptEvent) bool) {
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
func (k *Trails) forgetIfOver(t *Trail) {
	if t.over && t.kept == 0 && t.out == nil {
		delete(k.all, t.number)
	}
}

// tidy forgets what need not be kept any longer. The lock is held.
func (k *Trails) tidy(now time.Time) {
	if now.Sub(k.tidied) < keepTime {
		return
	}
	k.tidied = now
	k.forget(func(e keptEvent) bool { return (e.of.written || !e.must) && now.Sub(e.when) > keepTime })
}

// Sweep forgets what need not be kept any longer.
func (k *Trails) Sweep(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tidy(now)
}

// Close forgets everything.
func (k *Trails) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.forget(func(keptEvent) bool { return true })
}
