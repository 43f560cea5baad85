package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/ear"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// watchTimeout bounds one request to watch something.
const watchTimeout = ear.Answered

// A watch is what of a server is watched.
type watch struct {
	// asked is what each fleet asked for last, wanted what of all that no server has refused.
	asked  ear.Wishes[*Fleet]
	wanted drawbridge.Watched
	// turn counts what was wanted; applied is the last turn that the server knows of, and refused what it did not take of it.
	turn, applied int
	refused       ear.Refusals
	// said is closed and made anew when turn grows, moved when applied does.
	said, moved chan struct{}
}

func newWatch() watch {
	return watch{said: make(chan struct{}), moved: make(chan struct{})}
}

// turnTo has the home's keeper look at what is watched now. It needs mu.
func (e *endpoint) turnTo() {
	e.watch.wanted = e.watch.asked.All()
	e.watch.turn++
	signal(e.rewatch)
	close(e.watch.said)
	e.watch.said = make(chan struct{})
}

// unwatch ends what a fleet watches that leaves the server to others.
func (e *endpoint) unwatch(f *Fleet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.watch.asked.Of(f).None() {
		e.watch.asked.Set(f, drawbridge.Watched{})
		e.turnTo()
	}
}

// Watch says what of a server is watched: w is all of it, none ends it. It waits until the server has taken note; the watch
// is established again whenever the server was away. A server of the legacy generation tells of its tasks unasked. The
// error is for what was not asked for before: a *drawbridge.UnwatchedError where the server refused some of it, else a
// *drawbridge.Fault, and then Watch is to be told what is left. What a server refuses that it once let be watched is logged,
// and given up until the next Watch.
func (f *Fleet) Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.Watched) error {
	e, err := f.endpoint(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.pool.o.ConnectTimeout+watchTimeout)
	defer cancel()
	step := fmt.Sprintf("watch %s", id)
	w = drawbridge.Watched{URIs: slices.Clone(w.URIs), Tasks: slices.Clone(w.Tasks)}
	e.mu.Lock()
	if !slices.Contains(e.sharing.All(), f) { // it has just left, and nobody would take this back
		e.mu.Unlock()
		return unknown(id)
	}
	fresh := w.Without(e.watch.asked.All())
	e.watch.asked.Set(f, w)
	e.turnTo()
	turn := e.watch.turn
	var o *opening
	home := e.sessions[e.homeKey()]
	away := home == nil || home.over()
	if away && !fresh.None() {
		o = e.want(e.homeKey(), nil)
	}
	e.mu.Unlock()
	if away && o == nil {
		return nil // a server that is away watches nothing; it hears of this when it is back
	}
	if err = e.watched(ctx, step, o, turn, fresh); err == nil {
		return nil
	}
	if some, ok := errors.AsType[*drawbridge.UnwatchedError](err); ok {
		fresh = some.What
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watch.asked.Set(f, e.watch.asked.Of(f).Without(fresh)) // so that it is new when it is asked for again
	return err
}

// watched waits until the server, which o opens where it is away, knows of a turn, and says what it refused of fresh.
func (e *endpoint) watched(ctx context.Context, step string, o *opening, turn int, fresh drawbridge.Watched) error {
	if o != nil {
		select {
		case <-o.ready:
			if o.err != nil {
				return e.unavailable(step, o.err)
			}
		case <-ctx.Done():
		}
	}
	for {
		e.mu.Lock()
		applied, refused, moved := e.watch.applied, e.watch.refused.Of(fresh), e.watch.moved
		e.mu.Unlock()
		if applied >= turn {
			if len(refused) > 0 {
				return &drawbridge.UnwatchedError{What: refused.What(), Err: e.callFault(step, refused[0].Err)}
			}
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return e.callFault(step, ctx.Err())
		case <-e.ctx.Done():
			return e.unavailable(step, errRemoved)
		}
	}
}

// A watcher keeps the watch of an endpoint on one session: by subscriptions, or by a listening request. What a session
// beside the home takes is nobody's business: there the watch is the home's, repeated as far as it goes.
type watcher struct {
	ctx context.Context
	e   *endpoint
	s   *session
	// subscriptions are with a legacy server, ear listens to a modern one.
	subscriptions ear.Subscriptions
	ear           *ear.Ear
	// told is closed when the server has taken note for the first time, or has refused to.
	told  chan struct{}
	first sync.Once
}

// newWatcher makes a watcher that works until ctx ends.
func (e *endpoint) newWatcher(ctx context.Context, s *session) *watcher {
	w := &watcher{ctx: ctx, e: e, s: s, told: make(chan struct{})}
	if s.era == drawbridge.Modern {
		w.ear = w.newEar()
		return w
	}
	w.subscriptions = ear.Subscriptions{
		Ask: s.request, Able: wire.Declares(wire.Get(s.capabilities, "resources"), "subscribe"), Logger: e.log,
	}
	return w
}

// listenFirst is how long a listing waits for the server to say that it will tell of changes.
const listenFirst = 500 * time.Millisecond

// begin has the server know what is watched, before it is listed: a change in between would be lost.
func (w *watcher) begin() {
	w.apply()
	w.await()
}

// await waits until the server has taken note, but not for long.
func (w *watcher) await() {
	timer := time.NewTimer(listenFirst)
	defer timer.Stop()
	select {
	case <-w.told:
	case <-timer.C: // the server need not hurry
	case <-w.ctx.Done():
	}
}

// mirror repeats the home's watch on a caller's own session, where that is a process of its own: what the caller changes
// there the home does not see. It begins before the session's first call, as far as the server takes part, and goes on until
// stop. On a URL they all meet at the same server.
func (e *endpoint) mirror(s *session) (stop func()) {
	if !s.mirrors() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(e.ctx)
	w := e.newWatcher(ctx, s)
	var work sync.WaitGroup
	work.Go(func() {
		defer w.stop()
		for {
			e.mu.Lock()
			said := e.watch.said
			e.mu.Unlock()
			w.apply()
			select {
			case <-said:
			case <-ctx.Done():
				return
			}
		}
	})
	w.await()
	return func() {
		cancel()
		work.Wait()
	}
}

// mirrors says whether the session is a process of its own for one of the callers whose watch the home's is.
func (s *session) mirrors() bool {
	return s.lasts() && s.e.row.URL == "" && s.key.principal == s.e.pool.o.Principal
}

// stop ends the listening.
func (w *watcher) stop() {
	if w.ear != nil {
		w.ear.Stop()
	}
}

// apply has the server know what is watched, or begins to.
func (w *watcher) apply() {
	if w.ear != nil {
		w.ear.Turn()
		return
	}
	wanted, turn := w.wanted()
	ctx, cancel := context.WithTimeout(w.ctx, watchTimeout)
	defer cancel()
	refused := w.subscriptions.Turn(ctx, wanted.URIs)
	if !w.s.over() { // else the next session says
		w.applied(turn, refused, refused.Final().What())
	}
}

// wanted gives what is watched, and the turn of that.
func (w *watcher) wanted() (drawbridge.Watched, int) {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return w.e.watch.wanted, w.e.watch.turn
}

// applied notes that the server knows of a turn, but for what it refused; gone is not wanted any more.
func (w *watcher) applied(turn int, refused ear.Refusals, gone drawbridge.Watched) {
	w.first.Do(func() { close(w.told) })
	e := w.e
	for _, one := range refused {
		e.log.Info("a server does not let something be watched", "error", one.Err)
	}
	if !w.s.home() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if turn < e.watch.applied {
		return
	}
	e.watch.applied, e.watch.refused = turn, refused
	if turn == e.watch.turn {
		e.watch.wanted = e.watch.wanted.Without(gone)
	}
	close(e.watch.moved)
	e.watch.moved = make(chan struct{})
}
