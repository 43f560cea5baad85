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

// Watch replaces the fleet's watch set at a server; an empty set ends watching. Watch waits until the server has
// applied the set. The set is applied again after each reconnection. A stateful server sends notifications of its tasks
// without a request, so only the resources are requested from it.
//
// Watch returns an error only for items that were not watched before. If the server refused some of them, the error is
// a *drawbridge.UnwatchedError with these items. If the server is unavailable or does not answer in time, the error is
// a *drawbridge.Fault for all new items. The items of an error are removed from the fleet's watch set; the caller must
// then call Watch with the remaining items.
//
// If a server refuses items later, for example after a reconnection, the refusal is logged. These items are not watched
// until the next Watch.
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
	fresh, turn, ok := e.watch.request(f, &e.fleets, w)
	if !ok {
		return unknownServerFault(id)
	}
	var o *sessionOpening
	e.sessions.mu.Lock() // only after the watch set was changed, see retireIfIdle
	home := e.sessions.live[e.primaryKey()]
	away := home == nil || home.isOver()
	if away && !fresh.IsEmpty() {
		o = e.requestSession(e.primaryKey(), nil)
	}
	e.sessions.mu.Unlock()
	if away && o == nil {
		return nil // the set is applied when the server is connected again
	}
	if err = e.awaitWatch(ctx, step, o, turn, fresh); err == nil {
		return nil
	}
	if some, ok := errors.AsType[*drawbridge.UnwatchedError](err); ok {
		fresh = some.Unwatched
	}
	e.watch.withdraw(f, fresh)
	return err
}

// awaitWatch waits until the server has applied the watch set whose version is turn. o is the opening of the primary
// session, or nil if that session is open. If the server refused items of fresh, the newly watched items, awaitWatch
// returns an error that names them.
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
		applied, refused, moved := e.watch.progress(fresh)
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

// A watcher applies a server's watch set on one session, with subscriptions or a listening request. On an extra
// session, refusals are only logged, since the primary session determines the result of Watch.
type watcher struct {
	ctx     context.Context
	server  *managedServer
	session *session
	// subscriptions is used for a stateful server, listener for a stateless server.
	subscriptions resourceSubscriptions
	listener      *changeListener
	// acknowledged is closed when the server has accepted or refused the watch set for the first time.
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

// firstAckTimeout is how long a listing waits until the server acknowledges the watch set.
const firstAckTimeout = 500 * time.Millisecond

// startWatch applies the watch set and waits for the first acknowledgement. It is called before the server is listed,
// so that no change after the listing is missed.
func (w *watcher) startWatch() {
	w.applyWatch()
	w.awaitFirstAck()
}

// awaitFirstAck waits for the first acknowledgement, for at most firstAckTimeout.
func (w *watcher) awaitFirstAck() {
	timer := time.NewTimer(firstAckTimeout)
	defer timer.Stop()
	select {
	case <-w.acknowledged:
	case <-timer.C: // the server may acknowledge later
	case <-w.ctx.Done():
	}
}

// mirrorWatch starts to apply the watch set on an extra session that is a process of its own; for any other session it
// does nothing. The primary session is another process and does not see changes in that process. HTTP sessions do not
// need mirrorWatch, since all of them reach the same server. mirrorWatch is called before the session's first call, and
// continues until stop is called.
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
			said := e.watch.nextVersion()
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

// needsMirrorWatch reports whether the session is an extra session for stateful callers of Options.Principal that is a
// process of its own.
func (s *session) needsMirrorWatch() bool {
	return s.isStateful() && s.server.config.URL == "" && s.key.principal == s.server.pool.o.Principal
}

// stopListening ends the listening request of a stateless server.
func (w *watcher) stopListening() {
	if w.listener != nil {
		w.listener.stop()
	}
}

// applyWatch sends the watch set to a stateful server, or makes the listener of a stateless server send it.
func (w *watcher) applyWatch() {
	if w.listener != nil {
		w.listener.update()
		return
	}
	wanted, turn := w.server.watch.current()
	ctx, cancel := context.WithTimeout(w.ctx, watchTimeout)
	defer cancel()
	refused := w.subscriptions.update(ctx, wanted.URIs)
	if !w.session.isOver() { // otherwise the next session applies the set
		w.markApplied(turn, refused, refused.finalOnes().watchSet())
	}
}

// markApplied logs the server's refusals of a version of the watch set. On the primary session it also stores the
// version as applied, see serverWatch.markApplied.
func (w *watcher) markApplied(turn int, refused watchRefusals, gone drawbridge.WatchSet) {
	w.ackOnce.Do(func() { close(w.acknowledged) })
	e := w.server
	for _, one := range refused {
		e.log.Info("a server refused a watch", "error", one.Err)
	}
	if w.session.isPrimary() {
		e.watch.markApplied(turn, refused, gone)
	}
}
