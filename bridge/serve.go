package bridge

import (
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

var errIdle = errors.New("nobody called the server for its idle time")

// serve watches over the home while it lasts: lists it again when its lists have changed, keeps what is watched watched,
// and ends it when it is idle. It says why the session is over.
func (e *endpoint) serve(w *watcher) error {
	s := w.s
	idle := time.NewTimer(e.idleAfter(s))
	defer idle.Stop()
	var due <-chan time.Time // set while a refresh is due later
	var refreshed time.Time
	relist := func(strict bool) error {
		due, refreshed = nil, time.Now()
		return e.relist(s, time.Time{}, strict)
	}
	refresh := func() {
		if err := relist(false); err != nil && !s.over() {
			e.log.Warn("a list that changed was not listed again", "error", err)
		}
	}
	for {
		select {
		case <-e.ctx.Done():
			return e.ctx.Err()
		case <-s.lost:
			return s.cause
		case <-s.conn.Done():
			return s.ending()
		case <-e.rewatch:
			w.apply()
		case <-e.changed:
			wait := max(e.pool.o.RefreshEvery-time.Since(refreshed), e.budget.Wait(time.Now()))
			switch {
			case due != nil:
			case wait <= 0:
				refresh()
			default:
				due = time.After(wait)
			}
		case <-due:
			refresh()
		case answer := <-e.anew:
			answer <- relist(true)
		case <-e.spared:
			idle.Reset(0)
		case <-idle.C:
			left := e.retireIdle(s)
			if left <= 0 {
				return errIdle
			}
			idle.Reset(left)
		}
	}
}

// never is as good as never for a timer.
const never = 1000 * time.Hour

// idleAfter is how long a session may go unused: for ever unless there is a process to save.
func (e *endpoint) idleAfter(s *session) time.Duration {
	if s.key.client != "" && !s.key.lasting {
		return besideIdle
	}
	limit := e.pool.o.IdleStop
	if e.row.IdleStop != 0 {
		limit = e.row.IdleStop
	}
	if limit < 0 || e.row.URL != "" {
		return never
	}
	return limit
}

// spareIdle is how long a home stays that was listed, and that nobody calls since all have a session of another kind.
const spareIdle = 5 * time.Second

// spare says whether the home is a process too many. It needs mu.
func (e *endpoint) spare(home *session) bool {
	if home.began || home.proc == nil {
		return false
	}
	for k := range e.sessions {
		if k.lasting {
			return true
		}
	}
	return false
}

// retireIdle takes an idle session out of use, or says how long it has left.
func (e *endpoint) retireIdle(s *session) (left time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.idleAfter(s)
	if s.home() && e.spare(s) {
		limit = min(limit, spareIdle)
	}
	if s.busy > 0 || s.home() && !e.watch.wanted.None() {
		return limit
	}
	if left = limit - time.Since(s.used); left <= 0 {
		delete(e.sessions, s.key)
	}
	return left
}

// lostFault says that a mounted server went away.
func (e *endpoint) lostFault(why error) error {
	if why == nil {
		why = errors.New("connection lost")
	}
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: fmt.Sprintf("server %s is gone", e.row.ID), Err: e.veil.OverError(why),
	}
}
