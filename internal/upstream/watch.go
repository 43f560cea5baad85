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

// watchTimeout bounds one watch request.
const watchTimeout = listenAckTimeout

// A watchState is the watch set of a server.
type watchState struct {
	// requested holds the watch set of each fleet; wanted is their union less what the server refused.
	requested watchRequests[*Fleet]
	wanted    drawbridge.WatchSet
	// version counts changes of wanted. appliedVersion is the last version that the server applied, and refused what it
	// refused of that.
	version, appliedVersion int
	refused                 watchRefusals
	// versionSignal is closed and replaced when version grows, appliedSignal when appliedVersion does.
	versionSignal, appliedSignal chan struct{}
}

func newWatchState() watchState {
	return watchState{versionSignal: make(chan struct{}), appliedSignal: make(chan struct{})}
}

// updateWatch makes the primary loop apply the watch set. It needs mu.
func (e *managedServer) updateWatch() {
	e.watch.wanted = e.watch.requested.union()
	e.watch.version++
	wakeOne(e.rewatchSignal)
	close(e.watch.versionSignal)
	e.watch.versionSignal = make(chan struct{})
}

// removeWatches drops the watch set of a fleet that leaves the server.
func (e *managedServer) removeWatches(f *Fleet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.watch.requested.forOwner(f).IsEmpty() {
		e.watch.requested.set(f, drawbridge.WatchSet{})
		e.updateWatch()
	}
}

// Watch replaces the fleet's watch set at a server; an empty one ends watching. It waits until the server has applied
// it. The watch is established again whenever the server was away. A stateful server notifies of its tasks unasked.
//
// The error is for what was not watched before: a *drawbridge.UnwatchedError if the server refused some of it,
// otherwise a *drawbridge.Fault. The caller must then call Watch with the rest. What a server refuses later is logged
// and dropped until the next Watch.
func (f *Fleet) Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.WatchSet) error {
	if w.IsEmpty() && f.isHeld(id) {
		return nil
	}
	e, err := f.awaitServer(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.pool.o.ConnectTimeout+watchTimeout)
	defer cancel()
	step := fmt.Sprintf("watch %s", id)
	w = drawbridge.WatchSet{URIs: slices.Clone(w.URIs), Tasks: slices.Clone(w.Tasks)}
	e.mu.Lock()
	if !slices.Contains(e.fleets.snapshot(), f) { // it has just left: the watch would never be removed
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

// awaitWatch waits until the server, which o opens if it is away, has applied a version. It returns an error for what
// it refused of fresh.
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

// A watcher applies a server's watch set on one session, by subscriptions or by a listening request. Refusals on extra
// sessions are ignored: there the primary watch is repeated as far as possible.
type watcher struct {
	ctx     context.Context
	server  *managedServer
	session *session
	// subscriptions are for a stateful server, listener for a stateless one.
	subscriptions resourceSubscriptions
	listener      *changeListener
	// acknowledged is closed when the server has accepted or refused the watch for the first time.
	acknowledged chan struct{}
	ackOnce      sync.Once
}

// newWatcher returns a watcher that works until ctx ends.
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

// firstAckTimeout is how long a listing waits for the server to acknowledge the watch.
const firstAckTimeout = 500 * time.Millisecond

// startWatch applies the watch set before the server is listed: a change in between would be lost.
func (w *watcher) startWatch() {
	w.applyWatch()
	w.awaitFirstAck()
}

// awaitFirstAck waits for the first acknowledgement, but not for long.
func (w *watcher) awaitFirstAck() {
	timer := time.NewTimer(firstAckTimeout)
	defer timer.Stop()
	select {
	case <-w.acknowledged:
	case <-timer.C: // the server need not hurry
	case <-w.ctx.Done():
	}
}

// mirrorWatch repeats the primary watch on a caller's own session if that is a process of its own, since the primary
// session does not see changes made there. It begins before the session's first call and goes on until stop. HTTP
// sessions all reach the same server and need none.
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

// needsMirrorWatch reports whether the session is an extra process for callers of the primary principal.
func (s *session) needsMirrorWatch() bool {
	return s.isStateful() && s.server.config.URL == "" && s.key.principal == s.server.pool.o.Principal
}

// stopListening ends the listening.
func (w *watcher) stopListening() {
	if w.listener != nil {
		w.listener.stop()
	}
}

// applyWatch sends the watch set to the server, or starts to.
func (w *watcher) applyWatch() {
	if w.listener != nil {
		w.listener.update()
		return
	}
	wanted, turn := w.wantedWatch()
	ctx, cancel := context.WithTimeout(w.ctx, watchTimeout)
	defer cancel()
	refused := w.subscriptions.update(ctx, wanted.URIs)
	if !w.session.isOver() { // otherwise the next session reports
		w.markApplied(turn, refused, refused.finalOnes().watchSet())
	}
}

// wantedWatch returns the watch set and its version.
func (w *watcher) wantedWatch() (drawbridge.WatchSet, int) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.server.watch.wanted, w.server.watch.version
}

// markApplied records that the server applied a version, except what it refused; gone is not wanted any more.
func (w *watcher) markApplied(turn int, refused watchRefusals, gone drawbridge.WatchSet) {
	w.ackOnce.Do(func() { close(w.acknowledged) })
	e := w.server
	for _, one := range refused {
		e.log.Info("a server refused a watch", "error", one.Err)
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
