package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// watchTimeout bounds one request to watch something.
const watchTimeout = listenAckTimeout

// A watchState is what of a server is watched.
type watchState struct {
	// requested is what each fleet asked for last, wanted what of all that no server has refused.
	requested watchRequests[*Fleet]
	wanted    drawbridge.WatchSet
	// version counts what was wanted; applied is the last turn that the server knows of, and refused what it did not
	// take of it.
	version, appliedVersion int
	refused                 watchRefusals
	// versionSignal is closed and made anew when turn grows, moved when applied does.
	versionSignal, appliedSignal chan struct{}
}

func newWatchState() watchState {
	return watchState{versionSignal: make(chan struct{}), appliedSignal: make(chan struct{})}
}

// updateWatch has the home's keeper look at what is watched now. It needs mu.
func (e *managedServer) updateWatch() {
	e.watch.wanted = e.watch.requested.union()
	e.watch.version++
	wakeOne(e.rewatchSignal)
	close(e.watch.versionSignal)
	e.watch.versionSignal = make(chan struct{})
}

// removeWatches ends what a fleet watches that leaves the server to others.
func (e *managedServer) removeWatches(f *Fleet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.watch.requested.forOwner(f).IsEmpty() {
		e.watch.requested.set(f, drawbridge.WatchSet{})
		e.updateWatch()
	}
}

// Watch says what of a server is watched: w is all of it, none ends it. It waits until the server has taken note; the
// watch is established again whenever the server was away. A server of the legacy generation tells of its tasks
// unasked. The error is for what was not asked for before: a *drawbridge.UnwatchedError where the server refused some
// of it, else a
// *drawbridge.Fault, and then Watch is to be told what is left. What a server refuses that it once let be watched is
// logged, and given up until the next Watch.
func (f *Fleet) Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.WatchSet) error {
	e, err := f.serverByID(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.pool.o.ConnectTimeout+watchTimeout)
	defer cancel()
	step := fmt.Sprintf("watch %s", id)
	w = drawbridge.WatchSet{URIs: slices.Clone(w.URIs), Tasks: slices.Clone(w.Tasks)}
	e.mu.Lock()
	if !slices.Contains(e.fleets.snapshot(), f) { // it has just left, and nobody would take this back
		e.mu.Unlock()
		return unknownServerFault(id)
	}
	fresh := w.Without(e.watch.requested.union())
	e.watch.requested.set(f, w)
	e.updateWatch()
	turn := e.watch.version
	var o *sessionOpening
	home := e.sessions[e.primaryKey()]
	away := home == nil || home.isOver()
	if away && !fresh.IsEmpty() {
		o = e.requestSession(e.primaryKey(), nil)
	}
	e.mu.Unlock()
	if away && o == nil {
		return nil // a server that is away watches nothing; it hears of this when it is back
	}
	if err = e.awaitWatch(ctx, step, o, turn, fresh); err == nil {
		return nil
	}
	if some, ok := errors.AsType[*drawbridge.UnwatchedError](err); ok {
		fresh = some.Unwatched
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// so that it is new when it is asked for again
	e.watch.requested.set(f, e.watch.requested.forOwner(f).Without(fresh))
	return err
}

// awaitWatch waits until the server, which o opens where it is away, knows of a turn, and says what it refused of
// fresh.
func (e *managedServer) awaitWatch(ctx context.Context, step string, o *sessionOpening, turn int,
	fresh drawbridge.WatchSet) error {
	if o != nil {
		select {
		case <-o.ready:
			if o.err != nil {
				return e.unavailableFault(step, o.err)
			}
		case <-ctx.Done():
		}
	}
	for {
		e.mu.Lock()
		applied, refused, moved := e.watch.appliedVersion, e.watch.refused.within(fresh), e.watch.appliedSignal
		e.mu.Unlock()
		if applied >= turn {
			if len(refused) > 0 {
				return &drawbridge.UnwatchedError{Unwatched: refused.watchSet(), Err: e.callFault(step, refused[0].Err)}
			}
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return e.callFault(step, ctx.Err())
		case <-e.ctx.Done():
			return e.unavailableFault(step, errRemoved)
		}
	}
}

// A watcher keeps the watch of an endpoint on one session: by subscriptions, or by a listening request. What a session
// beside the home takes is nobody's business: there the watch is the home's, repeated as far as it goes.
type watcher struct {
	ctx     context.Context
	server  *managedServer
	session *session
	// subscriptions are with a legacy server, ear listens to a modern one.
	subscriptions resourceSubscriptions
	listener      *changeListener
	// acknowledged is closed when the server has taken note for the first time, or has refused to.
	acknowledged chan struct{}
	ackOnce      sync.Once
}

// newWatcher makes a watcher that works until ctx ends.
func (e *managedServer) newWatcher(ctx context.Context, s *session) *watcher {
	w := &watcher{ctx: ctx, server: e, session: s, acknowledged: make(chan struct{})}
	if s.era == drawbridge.Modern {
		w.listener = w.newListener()
		return w
	}
	w.subscriptions = resourceSubscriptions{
		SendRequest: s.sendRequest, Supported: mcp.DeclaresAny(rawjson.Get(s.capabilities, "resources"),
			"subscribe"), Logger: e.log,
	}
	return w
}

// firstAckTimeout is how long a listing waits for the server to say that it will tell of changes.
const firstAckTimeout = 500 * time.Millisecond

// startWatch has the server know what is watched, before it is listed: a change in between would be lost.
func (w *watcher) startWatch() {
	w.applyWatch()
	w.awaitFirstAck()
}

// awaitFirstAck waits until the server has taken note, but not for long.
func (w *watcher) awaitFirstAck() {
	timer := time.NewTimer(firstAckTimeout)
	defer timer.Stop()
	select {
	case <-w.acknowledged:
	case <-timer.C: // the server need not hurry
	case <-w.ctx.Done():
	}
}

// mirrorWatch repeats the home's watch on a caller's own session, where that is a process of its own: what the caller
// changes there the home does not see. It begins before the session's first call, as far as the server takes part, and
// goes on until stop. On a URL they all meet at the same server.
func (e *managedServer) mirrorWatch(s *session) (stop func()) {
	if !s.needsMirrorWatch() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(e.ctx)
	w := e.newWatcher(ctx, s)
	var work sync.WaitGroup
	work.Go(func() {
		defer w.stopListening()
		for {
			e.mu.Lock()
			said := e.watch.versionSignal
			e.mu.Unlock()
			w.applyWatch()
			select {
			case <-said:
			case <-ctx.Done():
				return
			}
		}
	})
	w.awaitFirstAck()
	return func() {
		cancel()
		work.Wait()
	}
}

// needsMirrorWatch says whether the session is a process of its own for one of the callers whose watch the home's is.
func (s *session) needsMirrorWatch() bool {
	return s.isStateful() && s.server.config.URL == "" && s.key.principal == s.server.pool.o.Principal
}

// stopListening ends the listening.
func (w *watcher) stopListening() {
	if w.listener != nil {
		w.listener.stop()
	}
}

// applyWatch has the server know what is watched, or begins to.
func (w *watcher) applyWatch() {
	if w.listener != nil {
		w.listener.update()
		return
	}
	wanted, turn := w.wantedWatch()
	ctx, cancel := context.WithTimeout(w.ctx, watchTimeout)
	defer cancel()
	refused := w.subscriptions.update(ctx, wanted.URIs)
	if !w.session.isOver() { // else the next session says
		w.markApplied(turn, refused, refused.finalOnes().watchSet())
	}
}

// wantedWatch gives what is watched, and the turn of that.
func (w *watcher) wantedWatch() (drawbridge.WatchSet, int) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.server.watch.wanted, w.server.watch.version
}

// markApplied notes that the server knows of a turn, but for what it refused; gone is not wanted any more.
func (w *watcher) markApplied(turn int, refused watchRefusals, gone drawbridge.WatchSet) {
	w.ackOnce.Do(func() { close(w.acknowledged) })
	e := w.server
	for _, one := range refused {
		e.log.Info("a server does not let something be watched", "error", one.Err)
	}
	if !w.session.isPrimary() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if turn < e.watch.appliedVersion {
		return
	}
	e.watch.appliedVersion, e.watch.refused = turn, refused
	if turn == e.watch.version {
		e.watch.wanted = e.watch.wanted.Without(gone)
	}
	close(e.watch.appliedSignal)
	e.watch.appliedSignal = make(chan struct{})
}
