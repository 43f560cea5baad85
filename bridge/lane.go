package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/callers"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A stateless caller says with each request what it can be asked; a server of the stateful generation hears that once a
// session. So such callers have sessions beside the home, one for each kind of client, which are opened with what that
// client declares. Nothing tells which call a question or a log line belongs to: a pipe has one stream for everything, and
// over HTTP the reference servers ask on the stream outside requests. So a session for callers who can be asked, or want
// to hear log lines, has one call at a time, and is called a lane.

const (
	// maxBeside is how many sessions for one principal's stateless callers an endpoint has where each takes a process,
	// maxBesideHTTP where it does not; maxOwn and maxOwnHTTP are how many for its stateful ones. The one that was idle
	// longest makes room.
	maxBeside     = 16
	maxBesideHTTP = 128
	maxOwn        = 64
	maxOwnHTTP    = 4096
	// besideIdle is how long one for stateless callers may go unused.
	besideIdle = time.Minute
)

// keyFor says which session a call belongs on, for a client of that kind. It is the home where the server's era is not
// known yet. It needs mu.
func (e *endpoint) keyFor(call drawbridge.Call, kind string) key {
	if e.era == 0 {
		return e.homeKey()
	}
	c := call.Caller
	k := key{era: e.homeEra(), principal: e.entrance().Principal(c)}
	if c.Era != 0 && e.era.Has(c.Era) {
		k.era = c.Era
	}
	if e.forgetful && callers.CanBeAsked(c) {
		k.era = drawbridge.Modern
	}
	if e.row.Share == "all" && e.row.Credentials != config.PerCaller {
		k.principal = e.pool.o.Principal
	}
	switch {
	case e.row.Isolate == "session" && c.Session == "":
		k.client, k.lane, k.once = kind, 1, true // its caller is one call
	case e.row.Isolate == "session":
		k.session = c.Session
	case k.era == drawbridge.Modern:
	case kind != "" && c.Era == drawbridge.Modern:
		k.client, k.principal = kind, e.entrance().Principal(c)
		if callers.CanBeAsked(c) || e.hearsLog(call) {
			k.lane = 1
		}
	case kind != "" && !e.apart(c):
		k.client, k.principal, k.lasting = kind, e.entrance().Principal(c), true
	case c.Era == drawbridge.Legacy && c.Session != "" && (kind != "" || e.hearsLog(call)):
		k.session = c.Session
	}
	if !k.beside() && k.principal == e.pool.o.Principal && k.era == e.homeEra() {
		return e.homeKey()
	}
	return k
}

// apart says whether a stateful caller has a session of its own: where that takes no process, where the server is known to
// ask, and where the caller has one. Most servers never ask: with them the callers of one kind share a session that was opened with what they declare. The
// first question there is passed on where it is known whose it is. It needs mu.
func (e *endpoint) apart(c drawbridge.Caller) bool {
	return e.row.URL != "" || e.asks || e.pool.callers.Level(c.Session) != "" ||
		e.sessions[key{era: drawbridge.Legacy, principal: c.Principal, session: c.Session}] != nil
}

// kindOf tells kinds of client apart, for those who may need a session of their kind: by what they say of themselves, however
// they write it. It is empty for others.
func (e *endpoint) kindOf(call drawbridge.Call) string {
	c := call.Caller
	isolated := e.row.Isolate == "session" && c.Session == ""
	declares := callers.CanBeAsked(c) || callers.SpeaksForItself(c)
	switch {
	case c.Era == drawbridge.Modern:
		declares = declares || e.hearsLog(call)
	case c.Era == drawbridge.Legacy && c.Session != "":
		if !declares || e.row.Isolate == "session" {
			return ""
		}
		return callers.Kind(c)
	default:
		declares = false
	}
	if !isolated && (!declares || e.speaks(drawbridge.Modern)) {
		return ""
	}
	return callers.Kind(c)
}

// speaks says whether the server is known to speak a generation.
func (e *endpoint) speaks(era drawbridge.Era) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.era.Has(era)
}

// mostBeside is how many sessions of a crowd there may be.
func (e *endpoint) mostBeside(k key) int {
	switch {
	case e.row.URL != "" && k.session != "":
		return maxOwnHTTP
	case e.row.URL != "":
		return maxBesideHTTP
	case k.session != "":
		return maxOwn
	}
	return maxBeside
}

// hearsLog says whether the caller wants log lines, which on a shared session could be anybody's.
func (e *endpoint) hearsLog(call drawbridge.Call) bool {
	if call.Caller.Era == drawbridge.Modern {
		return callers.LevelIn(call.Params) != ""
	}
	return call.Caller.Session != "" && e.pool.callers.Level(call.Caller.Session) != ""
}

// claim gives the session that a call is to use; of lanes the first that is free, which is the call's until release. It
// says false where all lanes are in use. It needs mu.
func (e *endpoint) claim(k key) (key, bool) {
	if k.lane == 0 {
		return k, true
	}
	fresh := key{}
	for k.lane = 1; k.lane <= e.mostBeside(k); k.lane++ {
		switch {
		case e.claimed[k]:
		case e.sessions[k] != nil:
			e.claimed[k] = true
			return k, true
		case fresh.lane == 0:
			fresh = k
		}
	}
	if fresh.lane > 0 {
		e.claimed[fresh] = true
	}
	return fresh, fresh.lane > 0
}

// release gives a claimed session back. It needs mu.
func (e *endpoint) release(k key) {
	if e.claimed[k] {
		delete(e.claimed, k)
		e.free()
	}
}

// free wakes those that wait for a lane, or for room. It needs mu.
func (e *endpoint) free() {
	close(e.freed)
	e.freed = make(chan struct{})
}

// A crowd are the sessions that count together against what there may be: one principal's, for its stateless callers or for
// its stateful ones.
type crowd struct {
	principal string
	own       bool
}

func (k key) crowd() crowd { return crowd{k.principal, k.session != ""} }

// beside says whether the session is one of those that are counted: there may be any number of kinds of caller.
func (k key) beside() bool { return k.session != "" || k.client != "" }

// room says whether one more session may be opened. Where there are as many as there may be it ends the one that was idle
// longest, and there is room when that has ended. It needs mu.
func (e *endpoint) room(k key) bool {
	if !k.beside() || e.crowds[k.crowd()] < e.mostBeside(k) {
		return true
	}
	var oldest *session
	for other, s := range e.sessions {
		idle := s.busy == 0 && s.began && !e.claimed[other] // one that has not begun is about to
		if idle && other.beside() && other.crowd() == k.crowd() && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest != nil {
		delete(e.sessions, oldest.key)
		oldest.lose(errIdle)
	}
	return false
}

// crowdBy counts a session that is opened, or has ended. It needs mu.
func (e *endpoint) crowdBy(k key, n int) {
	if !k.beside() {
		return
	}
	c := k.crowd()
	if e.crowds[c] += n; e.crowds[c] == 0 {
		delete(e.crowds, c)
	}
	if n < 0 {
		e.free()
	}
}

var errLanes = errors.New("every session with it has a call in progress, or one that waits for its caller")

// mostTries bounds how often a call waits for a session that is gone again before the call could be sent.
const mostTries = 4

// borrow gives a session for a call, opened if it must be; giveBack ends that.
func (e *endpoint) borrow(ctx context.Context, call drawbridge.Call, step string) (s *session, err error) {
	var mine key // the lane, once there is one
	defer func() {
		if err != nil && mine.lane > 0 {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.release(mine)
		}
	}()
	var patience time.Time // the end of the wait for a lane, once there is one
	kind := e.kindOf(call)
	for tries := 0; tries < mostTries; {
		if err := ctx.Err(); err != nil {
			return nil, e.unsent(step, err)
		}
		e.mu.Lock()
		k, free := e.keyFor(call, kind), true
		if k.lane > 0 && mine.lane == 0 {
			mine, free = e.claim(k)
		}
		if k.lane > 0 {
			k = mine
		}
		if !free || !e.mayEnter(k) {
			freed := e.freed
			e.mu.Unlock()
			if patience.IsZero() {
				patience = time.Now().Add(e.limit())
			}
			if err := e.awaitRoom(ctx, freed, patience, step); err != nil {
				return nil, err
			}
			continue
		}
		tries++
		s, ready, err := e.enterOrOpen(k, call, step)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-ready.wait:
		case <-ctx.Done():
			return nil, e.unsent(step, ctx.Err())
		}
		if err := ready.o.err; err != nil {
			return nil, e.unavailable(step, err)
		}
	}
	return nil, e.unavailable(step, errors.New("it ends as soon as it starts"))
}

// unsent is why a call did not leave us.
func (e *endpoint) unsent(step string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: step, Err: err}
}

// mayEnter says whether a call has a session to enter, or one may be opened for it. It needs mu.
func (e *endpoint) mayEnter(k key) bool {
	if s := e.sessions[k]; s != nil && !s.over() || e.openings[k] != nil {
		return true
	}
	return e.room(k)
}

// awaitRoom waits until a lane is free, or a session has ended.
func (e *endpoint) awaitRoom(ctx context.Context, freed <-chan struct{}, until time.Time, step string) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-freed:
		return nil
	case <-e.ctx.Done():
		return e.unavailable(step, errRemoved)
	case <-ctx.Done():
		return e.unsent(step, ctx.Err())
	case <-timer.C:
		return e.unavailable(step, errLanes)
	}
}

// An awaited opening is to be looked at when wait is closed.
type awaited struct {
	o    *opening
	wait <-chan struct{}
}

// failedJustNow gives what went wrong when the session, or the home, was opened last, where that is only a moment ago. It
// needs mu.
func (e *endpoint) failedJustNow(k key) error {
	for _, k := range []key{k, e.homeKey()} {
		if err := e.failures.Last(k); err != nil && !e.signedInSince(k.principal, err) {
			return err
		}
	}
	return nil
}

// enterOrOpen gives the session of a key for one more call, or the opening to wait for. It is called with mu held and
// returns without.
func (e *endpoint) enterOrOpen(k key, call drawbridge.Call, step string) (*session, awaited, error) {
	defer e.mu.Unlock()
	s := e.sessions[k]
	if s != nil && s.enter() {
		return s, awaited{}, nil
	}
	if e.openings[k] == nil {
		if err := e.failedJustNow(k); err != nil {
			return nil, awaited{}, e.unavailable(step, err)
		}
		if k.session != "" && e.pool.callers.Ended(k.session) {
			return nil, awaited{}, e.unsent(step, errGone)
		}
	}
	opener := call // a copy, so that the call itself need not outlive its caller
	o := e.want(k, &opener)
	if s != nil && isClosed(o.ready) {
		return nil, awaited{o, o.listed}, nil // it was lost while it was listed: that has to end first
	}
	return nil, awaited{o, o.ready}, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// giveBack ends what borrow began; open says that the server may still be at the call. Over HTTP a cancellation can overtake
// what it is for, and the server then waits for answers: so the session ends, and no other call has that lane with it.
func (e *endpoint) giveBack(s *session, open bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.leave()
	e.part(s)
	if e.calm != nil && e.idle() {
		close(e.calm)
		e.calm = nil
	}
	if s.key.once || open && s.key.lane > 0 && s.e.row.URL != "" {
		delete(e.sessions, s.key)
		s.lose(errDone)
	}
	if e.crowds[s.key.crowd()] >= e.mostBeside(s.key) {
		e.free() // it may make room now
	}
	e.release(s.key)
}

var errDone = errors.New("its last call is over")
