package upstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

var errIdle = errors.New("the server was idle")

// servePrimary serves the primary session until it ends. It lists the server again when lists changed, applies the
// watch set, and ends the session when it is idle. It returns the reason of the end.
func (e *managedServer) servePrimary(w *watcher) error {
	s := w.session
	idle := time.NewTimer(e.idleTimeout(s))
	defer idle.Stop()
	var due <-chan time.Time // set while a refresh is due later
	var refreshed time.Time
	relist := func(strict bool) error {
		due, refreshed = nil, time.Now()
		return e.listAndPublish(s, time.Time{}, strict)
	}
	refresh := func() {
		if err := relist(false); err != nil && !s.isOver() {
			e.log.Warn("a changed list was not read", "error", err)
		}
	}
	for {
		select {
		case <-e.ctx.Done():
			return e.ctx.Err()
		case <-s.lost:
			return s.cause
		case <-s.conn.Done():
			return s.endCause()
		case <-e.signals.rewatch:
			w.applyWatch()
		case <-e.signals.relist:
			wait := max(e.pool.o.RefreshEvery-time.Since(refreshed), e.listing.budget.waitTime(time.Now()))
			switch {
			case due != nil:
			case wait <= 0:
				refresh()
			default:
				due = time.After(wait)
			}
		case <-due:
			refresh()
		case answer := <-e.signals.relistRequests:
			answer <- relist(true)
		case <-e.signals.idleCheck:
			idle.Reset(0)
		case <-idle.C:
			left := e.retireIfIdle(s)
			if left <= 0 {
				return errIdle
			}
			idle.Reset(left)
		}
	}
}

// forever is a duration that means no limit.
const forever = 1000 * time.Hour

// idleTimeout returns how long a session may be idle before it is closed. A session over HTTP may be idle forever,
// unless it is a session for stateless callers.
func (e *managedServer) idleTimeout(s *session) time.Duration {
	if s.key.clientKind != "" && !s.key.sharedByKind {
		return extraIdleTimeout
	}
	limit := e.pool.o.IdleStop
	if e.config.IdleStop != 0 {
		limit = e.config.IdleStop
	}
	if limit < 0 || e.config.URL != "" {
		return forever
	}
	return limit
}

// unusedPrimaryIdle is the idle timeout of a stdio server's primary session that no call has used, while a session
// shared by client kind is open. The process of the primary session is then not needed.
const unusedPrimaryIdle = 5 * time.Second

// retireIfIdle removes a session from the usable sessions if it was idle long enough, and then returns 0 or less.
// Otherwise it returns how long the session may still be idle. It reads the watch set while sessions.mu is held. Watch
// changes the watch set first and then looks for the session. Thus either the session stays open or Watch opens another
// session.
func (e *managedServer) retireIfIdle(s *session) (left time.Duration) {
	p := &e.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := e.idleTimeout(s)
	if s.isPrimary() && p.isPrimaryUnusedLocked(s) {
		limit = min(limit, unusedPrimaryIdle)
	}
	if s.borrowed > 0 || s.isPrimary() && e.watch.isWatching() {
		return limit
	}
	if left = limit - time.Since(s.lastUsed); left <= 0 {
		delete(p.live, s.key)
	}
	return left
}

// lostFault returns the fault for a mounted server whose session was lost. why is the cause; it may be nil.
func (e *managedServer) lostFault(why error) error {
	if why == nil {
		why = errors.New("connection lost")
	}
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: fmt.Sprintf("server %s is gone", e.config.ID),
		Err: e.redactor.redactError(why),
	}
}
