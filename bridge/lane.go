package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A stateless caller says with each request what it can be asked; a server of the stateful generation hears that once a
// session. So such callers have sessions beside the home, one for each kind of client, which are opened with what that
// client declares. Nothing tells which call a question or a log line belongs to: a pipe has one stream for everything, and
// over HTTP the reference servers ask on the stream outside requests. So a session for callers who can be asked, or want
// to hear log lines, has one call at a time, and is called a lane.

const (
	// maxBeside is how many sessions for one principal's stateless callers an endpoint has where each takes a process,
	// maxBesideHTTP where it does not; the one that was idle longest makes room.
	maxBeside     = 16
	maxBesideHTTP = 128
	// besideIdle is how long one of them may go unused.
	besideIdle = time.Minute
)

// keyFor says which session a call belongs on. It is the home where the server's era is not known yet. It needs mu.
func (e *endpoint) keyFor(call drawbridge.Call) key {
	if e.era == 0 {
		return e.homeKey()
	}
	c := call.Caller
	k := key{era: e.homeEra(), principal: c.Principal}
	if c.Era != 0 && e.era.Has(c.Era) {
		k.era = c.Era
	}
	if e.forgetful && canBeAsked(c) {
		k.era = drawbridge.Modern
	}
	if e.row.Share == "all" {
		k.principal = e.fleet.o.Principal
	}
	switch {
	case e.row.Isolate == "session" && c.Session == "":
		k.client, k.lane, k.once = clientOf(c), 1, true // its caller is one call
	case e.row.Isolate == "session":
		k.session = c.Session
	case k.era == drawbridge.Modern:
	case c.Era == drawbridge.Legacy && c.Session != "" && (canBeAsked(c) || speaksForItself(c) || e.hearsLog(call)):
		k.session = c.Session
	case c.Era == drawbridge.Modern && (canBeAsked(c) || e.hearsLog(call)):
		k.client = clientOf(c)
		k.principal = c.Principal
		k.lane = 1
	case c.Era == drawbridge.Modern && speaksForItself(c):
		k.client = clientOf(c)
		k.principal = c.Principal
	}
	if k.session == "" && k.client == "" && k.principal == e.fleet.o.Principal && k.era == e.homeEra() {
		return e.homeKey()
	}
	return k
}

// clientOf tells kinds of stateless client apart: by what they say of themselves. It is not empty.
func clientOf(c drawbridge.Caller) string {
	return string(c.Client) + "\n" + string(c.Capabilities)
}

// mostBeside is how many sessions for stateless callers there may be.
func (e *endpoint) mostBeside() int {
	if e.row.URL == "" {
		return maxBeside
	}
	return maxBesideHTTP
}

// hearsLog says whether the caller wants log lines, which on a shared session could be anybody's.
func (e *endpoint) hearsLog(call drawbridge.Call) bool {
	if call.Caller.Era == drawbridge.Modern {
		return levelOf(call.Params) != ""
	}
	return call.Caller.Session != "" && e.fleet.levelOf(call.Caller.Session) != ""
}

// levelOf gives the log level that a stateless request asks for; empty for none.
func levelOf(params json.RawMessage) string {
	if !bytes.Contains(params, []byte("logLevel")) {
		return ""
	}
	return wire.GetText(params, "_meta", wire.MetaLogLevel)
}

// canBeAsked says whether a caller declared that servers may ask it something, which takes a session that says so.
func canBeAsked(c drawbridge.Caller) bool {
	if c.Session == "" && c.Era != drawbridge.Modern {
		return false
	}
	return wire.Declares(c.Capabilities, "sampling", "elicitation", "roots") || len(wire.Foreign(c.Capabilities)) > 0
}

// speaksForItself says whether a caller declared anything else that a server may go by.
func speaksForItself(c drawbridge.Caller) bool {
	return wire.Declares(c.Capabilities, "extensions", "experimental", "tasks")
}

// claim gives the session that a call is to use; of lanes the first that is free, which is the call's until release. It
// says false where all lanes are in use. It needs mu.
func (e *endpoint) claim(k key) (key, bool) {
	if k.lane == 0 {
		return k, true
	}
	fresh := key{}
	for k.lane = 1; k.lane <= e.mostBeside(); k.lane++ {
		switch {
		case e.claimed[k]:
		case e.sessions[k] != nil:
			e.claimed[k] = true
			return k, true
		case fresh.lane == 0:
			fresh = k
		}
	}
	if fresh.lane == 0 || e.claims(k.principal) >= e.mostBeside() {
		return k, false
	}
	e.claimed[fresh] = true
	return fresh, true
}

// claims counts the lanes that a principal's calls have. It needs mu.
func (e *endpoint) claims(principal string) (n int) {
	for k := range e.claimed {
		if k.principal == principal {
			n++
		}
	}
	return n
}

// release gives a claimed session back. It needs mu.
func (e *endpoint) release(k key) {
	if !e.claimed[k] {
		return
	}
	delete(e.claimed, k)
	close(e.freed)
	e.freed = make(chan struct{})
}

// makeRoom ends the session for a principal's stateless callers that was idle longest, where there are as many as there
// may be. It needs mu.
func (e *endpoint) makeRoom(principal string) {
	n := 0
	for k := range e.openings {
		if k.client != "" && k.principal == principal {
			n++
		}
	}
	var oldest *session
	for k, s := range e.sessions {
		if k.client == "" || k.principal != principal {
			continue
		}
		n++
		if s.busy == 0 && !e.claimed[k] && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if n >= e.mostBeside() && oldest != nil {
		delete(e.sessions, oldest.key)
		oldest.lose(errIdle)
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
	for range mostTries {
		e.mu.Lock()
		k := e.keyFor(call)
		for k.lane > 0 && mine.lane == 0 {
			var ok bool
			if mine, ok = e.claim(k); ok {
				break
			}
			mine = key{}
			if err := e.awaitLane(ctx, step); err != nil {
				return nil, err
			}
		}
		if mine.lane > 0 {
			k = mine
		}
		s, ready, err := e.enterOrOpen(k, call, step)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-ready.wait:
		case <-ctx.Done():
			return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: step, Err: ctx.Err()}
		}
		if err := ready.o.err; err != nil {
			return nil, e.unavailable(step, err)
		}
	}
	return nil, e.unavailable(step, errors.New("it ends as soon as it starts"))
}

// awaitLane waits until a lane is free. It is called with mu held, and returns with it held unless there is an error.
func (e *endpoint) awaitLane(ctx context.Context, step string) error {
	freed := e.freed
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, e.limit())
	defer cancel()
	select {
	case <-freed:
		e.mu.Lock()
		return nil
	case <-e.ctx.Done():
		return e.unavailable(step, errRemoved)
	case <-ctx.Done():
		return e.unavailable(step, errLanes)
	}
}

// An awaited opening is to be looked at when wait is closed.
type awaited struct {
	o    *opening
	wait <-chan struct{}
}

// enterOrOpen gives the session of a key for one more call, or the opening to wait for. It is called with mu held and
// returns without.
func (e *endpoint) enterOrOpen(k key, call drawbridge.Call, step string) (*session, awaited, error) {
	defer e.mu.Unlock()
	s := e.sessions[k]
	if s != nil && s.enter() {
		return s, awaited{}, nil
	}
	if e.openings[k] == nil && !e.failed.IsZero() && time.Since(e.failed) < justNow {
		return nil, awaited{}, e.unavailable(step, e.failure)
	}
	if k.client != "" && e.openings[k] == nil {
		e.makeRoom(k.principal)
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

func (e *endpoint) giveBack(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.leave()
	if s.key.once {
		delete(e.sessions, s.key)
		s.lose(errOnce)
	}
	e.release(s.key)
}

var errOnce = errors.New("it was for one call")
