package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
)

const (
	// The pause between attempts to mount a server doubles from minRemountPause to maxRemountPause.
	minRemountPause = 500 * time.Millisecond
	maxRemountPause = 60 * time.Second
	// stableSessionAge is how long a session must have been open before it was lost, so that the pause starts again at
	// minRemountPause.
	stableSessionAge = time.Minute
)

// runPrimary keeps the server mounted and listed. It returns when the server is idle or shut down. With OnDemand it
// also returns when the session is lost or could not be opened.
func (e *managedServer) runPrimary() {
	pause := minRemountPause
	for {
		began := time.Now()
		w, err := e.tryMount()
		var s *session
		if err == nil {
			s, err = w.session, e.servePrimary(w)
			w.stopListening()
			e.sessions.remove(s)
		}
		if err != nil && time.Since(began) > stableSessionAge {
			pause = minRemountPause
		}
		if !e.closeAndAwaitRemount(s, err, max(pause, e.listing.budget.waitTime(time.Now()))) {
			return
		}
		pause = min(2*pause, maxRemountPause)
	}
}

// closeAndAwaitRemount closes the primary session s, which ended because of why, and waits for the pause. After a
// failed attempt to mount, s is nil. closeAndAwaitRemount reports whether the server must then be mounted again.
func (e *managedServer) closeAndAwaitRemount(s *session, why error, pause time.Duration) bool {
	ending, idle := e.ctx.Err() != nil, why == errIdle
	switch {
	case s == nil:
	case ending, idle:
		e.setPhase(drawbridge.Closing, nil)
		e.closeSession(s, e.closeTimeout())
	default:
		e.closeSession(s, quickCloseTimeout)
		e.setPhase(drawbridge.Faulted, e.lostFault(why))
	}
	switch {
	case ending:
	case idle, e.pool.o.OnDemand:
		return e.keepPrimaryRunning(idle)
	case e.waitToRemount(pause, why):
		return true
	}
	e.finishPrimary()
	return false
}

// waitToRemount waits until the pause, with jitter, has passed or a caller needs the server. If a sign-in is required,
// it waits for the sign-in and not for the pause. It returns false when the server is shut down.
func (e *managedServer) waitToRemount(pause time.Duration, why error) bool {
	timer := time.NewTimer(pause*3/4 + rand.N(pause/2))
	defer timer.Stop()
	var signed <-chan struct{}
	if needed := oauth.SignInRequired(why); needed.CanSignIn() {
		timer.Stop()
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		signed = e.awaitSignIn(ctx, needed)
	}
	for {
		if e.sessions.isPrimaryWanted() {
			return e.ctx.Err() == nil
		}
		select {
		case <-timer.C:
			return e.ctx.Err() == nil
		case <-signed:
			return e.ctx.Err() == nil
		case <-e.signals.retryNow:
		case <-e.ctx.Done():
			return false
		}
	}
}

// keepPrimaryRunning reports whether runPrimary must continue: a caller waits for the primary session, or the server
// must be listed again. Otherwise it marks runPrimary as ended, and runPrimary must return. idle is set if the session
// ended because it was idle.
func (e *managedServer) keepPrimaryRunning(idle bool) bool {
	if e.sessions.isPrimaryWanted() {
		return true
	}
	if idle {
		e.setPhase(drawbridge.Idle, nil)
	}
	p := &e.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	p.primaryRunning = p.openings[p.primary] != nil || len(e.signals.relist) > 0
	return p.primaryRunning
}

// mountToRelist mounts a server whose primary session was stopped, so that the server is listed again.
func (e *managedServer) mountToRelist() {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	if !e.sessions.primaryRunning && !e.workers.hasEnded() {
		e.requestSession(e.primaryKey(), nil)
	}
}

// finishPrimary ends the opening of the primary session and sets the final state when the server is shut down.
func (e *managedServer) finishPrimary() {
	p := &e.sessions
	p.mu.Lock()
	if o := p.openings[p.primary]; o != nil {
		p.finishLocked(p.primary, o, e.mountFault("start", errRemoved))
	}
	p.primaryRunning = false
	p.mu.Unlock()
	switch waited := e.health.connectingFor(); {
	case waited >= slowStart: // stored for the next process, which may be ended even sooner
		e.setPhase(drawbridge.Faulted, e.mountFault("start", fmt.Errorf(
			"it was stopped after %s, before it answered", waited.Round(time.Second))))
	case !e.health.isFaulted(): // a fault stays visible
		e.setPhase(drawbridge.Closed, nil)
	}
	e.health.markAttempted()
}

// slowStart is how long a start may take before it is reported as slow.
const slowStart = 8 * time.Second

// watchSlowStart reports a fault in the server's status if the start takes longer than slowStart. The start continues:
// the fault is for people who read the status meanwhile. stop must be called when the start has ended.
func (e *managedServer) watchSlowStart() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	if !e.workers.start(func() {
		defer close(ended)
		timer := time.NewTimer(slowStart)
		defer timer.Stop()
		select {
		case <-done:
		case <-e.ctx.Done():
		case <-timer.C:
			e.setPhase(drawbridge.Connecting, e.mountFault("start",
				fmt.Errorf("it did not answer within %s; the start goes on", slowStart)))
		}
	}) {
		close(ended)
	}
	return func() {
		close(done)
		<-ended // so the status of the slow start is saved before the final status
	}
}

// tryMount mounts the server: it connects, does the handshake, starts the watcher, and lists the server.
func (e *managedServer) tryMount() (*watcher, error) {
	began := time.Now()
	e.sessions.mu.Lock()
	o := e.requestSession(e.primaryKey(), nil)
	e.sessions.mu.Unlock()
	defer e.health.markAttempted()
	defer e.pool.starts.acquire(o.ctx, o.urgent, e.startsLate)()
	if err := e.ctx.Err(); err != nil {
		e.finishPrimaryOpening(o, err)
		return nil, err
	}
	e.setPhase(drawbridge.Connecting, nil)
	stopWatch := sync.OnceFunc(e.watchSlowStart())
	defer stopWatch()
	if m := e.pool.o.MountStore; m != nil {
		if err := m.RecordAttempt(e.ctx, e.config.Hash, e.config.ID); err != nil && e.ctx.Err() == nil {
			e.log.Warn("a mount attempt was not recorded", "error", err)
		}
	}
	s, era, err := e.openPrimary(o.ctx)
	if err != nil {
		stopWatch()
		e.finishPrimaryOpening(o, err)
		return nil, err
	}
	e.sessions.mu.Lock()
	e.sessions.era, s.opening = era, o
	e.publishSession(o, s)
	e.sessions.mu.Unlock()
	stopWatch()
	w := e.newWatcher(e.ctx, s)
	w.startWatch()
	if err := e.listAndPublish(s, began, false); err != nil {
		w.stopListening()
		e.sessions.remove(s)
		e.closeSession(s, quickCloseTimeout)
		e.finishPrimaryOpening(o, err)
		return nil, err
	}
	e.finishPrimaryOpening(o, nil)
	return w, nil
}

// finishPrimaryOpening sets the state to Faulted if err is not nil, and then ends the opening of the primary session.
func (e *managedServer) finishPrimaryOpening(o *sessionOpening, err error) {
	if err != nil && e.ctx.Err() == nil {
		e.setPhase(drawbridge.Faulted, err)
	}
	p := &e.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failures.record(p.primary, err)
	}
	p.finishLocked(p.primary, o, err)
}

// runExtra opens an extra session and keeps it open until it is lost or idle.
func (e *managedServer) runExtra(k sessionKey, o *sessionOpening, opener *drawbridge.Call) {
	p := &e.sessions
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.resizeGroupLocked(k, -1)
	}()
	defer e.callerAuth().ForgetCaller(k.principal)
	ctx, cancel := context.WithTimeout(o.ctx, e.pool.o.ConnectTimeout)
	s, err := e.openExtra(ctx, k, opener)
	cancel()
	if err == nil {
		defer e.mirrorWatch(s)()
	}
	p.mu.Lock()
	switch {
	case err != nil:
		if o.ctx.Err() != nil {
			err = e.mountFault("start", errCallerGone)
		} else {
			p.failures.record(k, err)
		}
		p.finishLocked(k, o, err)
		p.mu.Unlock()
		return
	case o.ctx.Err() != nil:
		s.markLost(errCallerGone)
	case k.sharedByKind && p.asksClients:
		s.markLost(errIdle) // the server sent a request meanwhile: callers now use private sessions
	case p.era.Has(drawbridge.Modern) && isSessionless(s):
		p.sessionlessLegacy = true
		s.markLost(errSessionlessLegacy)
	}
	e.publishSession(o, s)
	p.finishLocked(k, o, nil)
	p.mu.Unlock()
	idle := time.NewTimer(e.idleTimeout(s))
	defer idle.Stop()
	why := error(nil)
	for why == nil {
		select {
		case <-e.ctx.Done():
			why = e.ctx.Err()
		case <-s.lost:
			why = s.cause
		case <-s.conn.Done():
			why = s.endCause()
			e.log.Info("a caller's own connection was lost", "error", why)
		case <-idle.C:
			if left := e.retireIfIdle(s); left > 0 {
				idle.Reset(left)
			} else {
				why = errIdle
			}
		}
	}
	e.sessions.remove(s)
	e.closeSession(s, e.closeTimeout())
}

var errSessionlessLegacy = errors.New(
	"the server keeps no sessions, and also supports the stateless protocol")

// isSessionless reports whether a session for stateful callers has no session ID: the server stores no state for it.
func isSessionless(s *session) bool {
	conn, ok := s.conn.(interface{ HasSession() bool })
	return ok && s.era == drawbridge.Legacy && s.isStateful() && !conn.HasSession()
}
