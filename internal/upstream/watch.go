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

// Watch replaces the fleet's watch set at a server; an empty one ends watching. It waits until the server has applied
// it. The watch is established again whenever the server was away. A stateful server notifies of its tasks unasked.
//
// The error is for items that were not watched before: a *drawbridge.UnwatchedError if the server refused some of it,
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
	fresh, turn, ok := e.watch.request(f, &e.fleets, w)
	if !ok {
		return unknownServerFault(id)
	}
	var o *sessionOpening
	e.sessions.mu.Lock() // after the watch set was changed, see retireIfIdle
	home := e.sessions.live[e.primaryKey()]
	away := home == nil || home.isOver()
	if away && !fresh.IsEmpty() {
		o = e.requestSession(e.primaryKey(), nil)
	}
	e.sessions.mu.Unlock()
	if away && o == nil {
		return nil // a server that is away watches nothing; it hears of this when it is back
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

// awaitWatch waits until the server, which o opens if it is away, has applied a version. It returns an error
// for the items of fresh that were refused.
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
	wanted, turn := w.server.watch.current()
	ctx, cancel := context.WithTimeout(w.ctx, watchTimeout)
	defer cancel()
	refused := w.subscriptions.update(ctx, wanted.URIs)
	if !w.session.isOver() { // otherwise the next session reports
		w.markApplied(turn, refused, refused.finalOnes().watchSet())
	}
}

// markApplied records that the server applied a version, except what it refused; gone is not wanted any more.
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
