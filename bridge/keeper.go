package bridge

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
)

const (
	// The pauses between attempts to mount a server again double from the first to the last.
	firstPause = 500 * time.Millisecond
	lastPause  = 60 * time.Second
	// stayed is how long a session must have lasted for its loss to count as the first.
	stayed = time.Minute
)

// keepHome is the goroutine that keeps the server mounted and listed: until it is idle, the endpoint ends, or, where
// servers are mounted on demand, it is lost.
func (e *endpoint) keepHome() {
	pause := firstPause
	for {
		began := time.Now()
		w, err := e.attempt()
		var s *session
		if err == nil {
			s, err = w.s, e.serve(w)
			w.stop()
			e.withdraw(s)
		}
		if err != nil && time.Since(began) > stayed {
			pause = firstPause
		}
		if !e.again(s, err, max(pause, e.budget.Wait(time.Now()))) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// again ends a session, and says whether another is wanted once the pause is over. s is nil after an attempt that went
// wrong.
func (e *endpoint) again(s *session, why error, pause time.Duration) bool {
	ending, idle := e.ctx.Err() != nil, why == errIdle
	switch {
	case s == nil:
	case ending, idle:
		e.enter(drawbridge.Closing, nil)
		e.close(s, e.closeLimit())
	default:
		e.close(s, closeSoon)
		e.enter(drawbridge.Faulted, e.lostFault(why))
	}
	switch {
	case ending:
	case idle, e.pool.o.OnDemand:
		return e.stillWanted(idle)
	case e.rest(pause, why):
		return true
	}
	e.depart()
	return false
}

// rest waits out the pause with jitter, or until somebody wants the server; after a sign-in was found to be needed, until
// somebody has signed in. It says false at the end of the endpoint.
func (e *endpoint) rest(pause time.Duration, why error) bool {
	timer := time.NewTimer(pause*3/4 + rand.N(pause/2))
	defer timer.Stop()
	var signed <-chan struct{}
	if needed := signin.Needed(why); needed.Visitable() {
		timer.Stop()
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		signed = e.signedIn(ctx, needed)
	}
	for {
		if e.wanted() {
			return e.ctx.Err() == nil
		}
		select {
		case <-timer.C:
			return e.ctx.Err() == nil
		case <-signed:
			return e.ctx.Err() == nil
		case <-e.kick:
		case <-e.ctx.Done():
			return false
		}
	}
}

func (e *endpoint) wanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.openings[e.homeKey()] != nil
}

// stillWanted says whether somebody waits for the home, or for what it would list. If nobody does, its keeper is done.
func (e *endpoint) stillWanted(idle bool) bool {
	if e.wanted() {
		return true
	}
	if idle {
		e.enter(drawbridge.Idle, nil)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keeping = e.openings[e.homeKey()] != nil || len(e.changed) > 0
	return e.keeping
}

// relistSpared has a server listed again whose home was spared: it is mounted for that.
func (e *endpoint) relistSpared() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.keeping && !e.ended {
		e.want(e.homeKey(), nil)
	}
}

// depart is the last act of the home's keeper at the end of the endpoint.
func (e *endpoint) depart() {
	e.mu.Lock()
	if o := e.openings[e.homeKey()]; o != nil {
		e.settle(e.homeKey(), o, e.mountFault("start", errRemoved))
	}
	e.keeping = false
	faulted := e.phase == drawbridge.Faulted
	e.mu.Unlock()
	if !faulted { // else that is what people are to find
		e.enter(drawbridge.Closed, nil)
	}
	e.tryEnded()
}

// attempt mounts the server: connects, greets, listens, lists.
func (e *endpoint) attempt() (*watcher, error) {
	began := time.Now()
	e.mu.Lock()
	o := e.want(e.homeKey(), nil)
	e.mu.Unlock()
	defer e.tryEnded()
	e.enter(drawbridge.Connecting, nil)
	if m := e.pool.o.Memory; m != nil {
		if err := m.Attempt(e.ctx, e.row.Hash, e.row.ID); err != nil && e.ctx.Err() == nil {
			e.log.Warn("an attempt to mount was not recorded", "error", err)
		}
	}
	s, era, err := e.openHome(o.ctx)
	if err != nil {
		e.settleHome(o, err)
		return nil, err
	}
	e.mu.Lock()
	e.era, s.opening = era, o
	e.opened(o, s)
	e.mu.Unlock()
	w := e.newWatcher(e.ctx, s)
	w.begin()
	if err := e.relist(s, began, false); err != nil {
		w.stop()
		e.withdraw(s)
		e.close(s, closeSoon)
		e.settleHome(o, err)
		return nil, err
	}
	e.settleHome(o, nil)
	return w, nil
}

// settleHome ends the opening of the home, after the phase says how that went.
func (e *endpoint) settleHome(o *opening, err error) {
	if err != nil && e.ctx.Err() == nil {
		e.enter(drawbridge.Faulted, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.failures.Note(e.homeKey(), err)
	}
	e.settle(e.homeKey(), o, err)
}

// tryEnded lets those go on who wait for the first attempt to end.
func (e *endpoint) tryEnded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !isClosed(e.tried) {
		close(e.tried)
	}
}

// keepOther is the goroutine of a session beside the home.
func (e *endpoint) keepOther(k key, o *opening, opener *drawbridge.Call) {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.crowdBy(k, -1)
	}()
	defer e.entrance().Forget(k.principal)
	ctx, cancel := context.WithTimeout(o.ctx, e.pool.o.ConnectTimeout)
	s, err := e.openOther(ctx, k, opener)
	cancel()
	if err == nil {
		defer e.mirror(s)()
	}
	e.mu.Lock()
	switch {
	case err != nil:
		if o.ctx.Err() != nil {
			err = e.mountFault("start", errGone)
		} else {
			e.failures.Note(k, err)
		}
		e.settle(k, o, err)
		e.mu.Unlock()
		return
	case o.ctx.Err() != nil:
		s.lose(errGone)
	case k.lasting && e.asks:
		s.lose(errIdle) // it has asked meanwhile, so that nobody wants this session
	case e.era.Has(drawbridge.Modern) && forgets(s):
		e.forgetful = true
		s.lose(errForgets)
	}
	e.opened(o, s)
	e.settle(k, o, nil)
	e.mu.Unlock()
	idle := time.NewTimer(e.idleAfter(s))
	defer idle.Stop()
	why := error(nil)
	for why == nil {
		select {
		case <-e.ctx.Done():
			why = e.ctx.Err()
		case <-s.lost:
			why = s.cause
		case <-s.conn.Done():
			why = s.ending()
			e.log.Info("a caller's own connection was lost", "error", why)
		case <-idle.C:
			if left := e.retireIdle(s); left > 0 {
				idle.Reset(left)
			} else {
				why = errIdle
			}
		}
	}
	e.withdraw(s)
	e.close(s, e.closeLimit())
}

var errForgets = errors.New("the server keeps no sessions in the stateful generation, and speaks the other one too")

// forgets says whether a session of the stateful generation is one that its server knows nothing of.
func forgets(s *session) bool {
	conn, ok := s.conn.(interface{ Kept() bool })
	return ok && s.era == drawbridge.Legacy && s.lasts() && !conn.Kept()
}
