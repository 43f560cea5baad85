package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// A sessionSet contains the open sessions of one server, and the openings: the sessions that are being opened. It also
// contains the state that determines which session a call uses. It is one type because these parts must change
// together, while mu is held:
//
//   - When a session is opened, it is added before its opening is removed. So a key without a session and without an
//     opening is not in use.
//   - When a server has sent a request, its callers must not use shared sessions any more. So no call borrows a shared
//     session after asksClients was set.
//   - The use count of a session changes together with the slots and group sizes. So no session is closed while a call
//     uses it.
//
// Two rules concern the other parts of a server:
//
//   - The opening of the primary session ends after the listing was stored. Code that holds mu and finds no listing
//     therefore finds that opening, if there is one, and does not start a second opening.
//   - A fleet changes its watch set before it looks for the primary session. The watch set is read with mu held before
//     an idle session is ended. So a session with a watch set stays open, or the fleet opens another session.
//
// mu is acquired before the locks of the watch set, the listing, the health, the workers and the calls of a session. It
// is acquired after no other lock of the server. Methods named Locked require that mu is held. mu also guards some
// fields of each session, as their comment states.
type sessionSet struct {
	primary  sessionKey // the key of the primary session
	overHTTP bool       // sessions have no process

	mu             sync.Mutex
	live           map[sessionKey]*session
	openings       map[sessionKey]*sessionOpening
	primaryRunning bool // runPrimary is running
	// claimedSlots are the keys whose slot is in use. slotFreed is closed and replaced when a slot is freed or a
	// session ends.
	claimedSlots map[sessionKey]bool
	slotFreed    chan struct{}
	// drained is closed when the last call in flight has ended; nil unless waitForCalls waits.
	drained chan struct{}
	// failures stores the recent errors of openings. groupSizes counts the sessions of each group, until they are
	// closed.
	failures   recentFailures[sessionKey]
	groupSizes map[sessionGroup]int
	era        drawbridge.ProtocolEra // the protocol eras of the server; 0 while unknown
	// sessionlessLegacy is set if the server supports both eras and assigns no session ID in the stateful era. Such a
	// server cannot send requests in that era.
	sessionlessLegacy bool
	// asksClients is set after the server has sent a request that needs a client capability.
	asksClients bool
}

// A sessionOpening is a session that is being opened.
type sessionOpening struct {
	ctx    context.Context
	cancel context.CancelFunc
	// ready is closed when the session can be used, or when the opening failed with err.
	ready chan struct{}
	err   error
	// listed is closed when the opening has ended, after ready. For the primary session, the server is then listed, or
	// fault is set.
	listed chan struct{}
	fault  error
	// urgent is closed when a caller waits for the opening. Then it does not wait in the startGate.
	urgent chan struct{}
}

// markUrgentLocked makes an opening urgent: a caller waits for it.
func (o *sessionOpening) markUrgentLocked() {
	if !isClosed(o.urgent) {
		close(o.urgent)
	}
}

func newSessionSet(primary sessionKey, overHTTP, asksClients bool) sessionSet {
	return sessionSet{primary: primary, overHTTP: overHTTP, asksClients: asksClients,
		live: map[sessionKey]*session{}, openings: map[sessionKey]*sessionOpening{},
		claimedSlots: map[sessionKey]bool{}, groupSizes: map[sessionGroup]int{}, slotFreed: make(chan struct{})}
}

// A sessionGroup identifies the sessions for which one maximum number applies: all private sessions of a principal, or
// all other extra sessions of that principal.
type sessionGroup struct {
	principal string
	private   bool
}

func (k sessionKey) group() sessionGroup { return sessionGroup{k.principal, k.session != ""} }

// isExtra reports whether the key is the key of an extra session, which counts towards the maximum of its group.
func (k sessionKey) isExtra() bool { return k.session != "" || k.clientKind != "" }

// primaryEraLocked returns the era of the primary session: stateless if the server supports both eras.
func (p *sessionSet) primaryEraLocked() drawbridge.ProtocolEra {
	if p.era.Has(drawbridge.Modern) {
		return drawbridge.Modern
	}
	return p.era
}

// knownEra returns the protocol eras that the server is known to support; 0 if unknown.
func (p *sessionSet) knownEra() drawbridge.ProtocolEra {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.era
}

// primarySession returns the primary session, or nil.
func (p *sessionSet) primarySession() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live[p.primary]
}

// isPrimaryWanted reports whether a caller waits for the primary session.
func (p *sessionSet) isPrimaryWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.openings[p.primary] != nil
}

// primaryProcess returns the process of the primary session, or of a shared session if the primary session was stopped.
// It returns nil if there is no such process.
func (p *sessionSet) primaryProcess() *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if home := p.live[p.primary]; home != nil {
		return home.proc
	}
	for k, s := range p.live {
		if k.sharedByKind { // the primary session was stopped
			return s.proc
		}
	}
	return nil
}

// usable returns the sessions that are not over.
func (p *sessionSet) usable() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var live []*session
	for _, s := range p.live {
		if !s.isOver() {
			live = append(live, s)
		}
	}
	return live
}

// publishLocked makes a session usable for calls. The opening of the primary session continues until the server is
// listed.
func (p *sessionSet) publishLocked(o *sessionOpening, s *session) {
	p.live[s.key] = s
	p.failures.forget(s.key)
	close(o.ready)
}

// finishLocked ends an opening. err is nil if the opening succeeded.
func (p *sessionSet) finishLocked(k sessionKey, o *sessionOpening, err error) {
	o.fault = err
	if !isClosed(o.ready) {
		o.err = err
		close(o.ready)
	}
	close(o.listed)
	o.cancel()
	delete(p.openings, k)
}

// remove removes a session from the usable sessions.
func (p *sessionSet) remove(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live[s.key] == s {
		delete(p.live, s.key)
	}
}

// endCallerSession ends the private sessions of the caller with that session ID, and cancels their openings.
func (p *sessionSet) endCallerSession(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, s := range p.live {
		if k.session == session {
			s.markLost(errCallerGone)
		}
	}
	for k, o := range p.openings {
		if k.session == session {
			o.cancel()
		}
	}
}

// markAsksClients stores that the server sends requests to clients. From now on, each stateful caller that declares
// capabilities gets a private session. Shared sessions that no call uses are ended.
func (p *sessionSet) markAsksClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asksClients = true
	for _, s := range p.live {
		p.retireSharedLocked(s)
	}
}

// retireSharedLocked ends the session s if callers of one client kind share it, no call uses it, and the server sends
// requests. The callers of such a server use private sessions.
func (p *sessionSet) retireSharedLocked(s *session) {
	if s.key.sharedByKind && p.asksClients && s.borrowed == 0 {
		delete(p.live, s.key)
		s.markLost(errIdle)
	}
}

// giveBack ends the use of a borrowed session, see managedServer.returnSession. open is the argument callMayRun of that
// method.
func (p *sessionSet) giveBack(s *session, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.borrowed--
	s.lastUsed = time.Now()
	p.retireSharedLocked(s)
	if p.drained != nil && p.hasNoCallsLocked() {
		close(p.drained)
		p.drained = nil
	}
	if s.key.singleUse || open && s.key.slot > 0 && p.overHTTP {
		delete(p.live, s.key)
		s.markLost(errSingleUse)
	}
	if p.groupSizes[s.key.group()] >= p.maxGroupSessions(s.key) {
		p.wakeWaitersLocked() // a waiting call may now open a session
	}
	p.releaseSlotLocked(s.key)
}

// whenIdle returns a channel that is closed when no call is in flight. It returns nil if no call is in flight now.
func (p *sessionSet) whenIdle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hasNoCallsLocked() {
		return nil
	}
	p.drained = make(chan struct{})
	return p.drained
}

// hasNoCallsLocked reports whether no session is borrowed by a call.
func (p *sessionSet) hasNoCallsLocked() bool {
	for _, s := range p.live {
		if s.borrowed > 0 {
			return false
		}
	}
	return true
}

// isPrimaryUnusedLocked reports whether the primary session is a process without any call so far, and a shared session
// is open.
func (p *sessionSet) isPrimaryUnusedLocked(home *session) bool {
	if home.calls.hadCall() || home.proc == nil {
		return false
	}
	for k := range p.live {
		if k.sharedByKind {
			return true
		}
	}
	return false
}

// maxGroupSessions returns how many sessions the group of a key may have.
func (p *sessionSet) maxGroupSessions(k sessionKey) int {
	switch {
	case p.overHTTP && k.session != "":
		return maxPrivateSessionsHTTP
	case p.overHTTP:
		return maxExtraSessionsHTTP
	case k.session != "":
		return maxPrivateSessions
	}
	return maxExtraSessions
}

// claimSlotLocked returns the key of the session for a call. If k.slot is not 0, claimSlotLocked selects a free slot,
// preferably the slot of an open session. The slot is in use until releaseSlotLocked. claimSlotLocked returns false if
// all slots are in use.
func (p *sessionSet) claimSlotLocked(k sessionKey) (sessionKey, bool) {
	if k.slot == 0 {
		return k, true
	}
	fresh := sessionKey{}
	for k.slot = 1; k.slot <= p.maxGroupSessions(k); k.slot++ {
		switch {
		case p.claimedSlots[k]:
		case p.live[k] != nil:
			p.claimedSlots[k] = true
			return k, true
		case fresh.slot == 0:
			fresh = k
		}
	}
	if fresh.slot > 0 {
		p.claimedSlots[fresh] = true
	}
	return fresh, fresh.slot > 0
}

// releaseSlot frees a claimed slot and wakes the calls that wait for one.
func (p *sessionSet) releaseSlot(k sessionKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseSlotLocked(k)
}

func (p *sessionSet) releaseSlotLocked(k sessionKey) {
	if p.claimedSlots[k] {
		delete(p.claimedSlots, k)
		p.wakeWaitersLocked()
	}
}

// wakeWaitersLocked wakes the calls that wait for a slot or for permission to open a session.
func (p *sessionSet) wakeWaitersLocked() {
	close(p.slotFreed)
	p.slotFreed = make(chan struct{})
}

// canUseLocked reports whether a call can use a session with that key: the session is open, is being opened, or may be
// opened.
func (p *sessionSet) canUseLocked(k sessionKey) bool {
	if s := p.live[k]; s != nil && !s.isOver() || p.openings[k] != nil {
		return true
	}
	return p.makeRoomLocked(k)
}

// makeRoomLocked reports whether one more session may be opened with the key k. If the group of k has its maximum
// number of sessions, it returns false and ends the group's session that was idle longest. Another session may be
// opened when that session has ended.
func (p *sessionSet) makeRoomLocked(k sessionKey) bool {
	if !k.isExtra() || p.groupSizes[k.group()] < p.maxGroupSessions(k) {
		return true
	}
	var oldest *session
	for other, s := range p.live {
		idle := s.borrowed == 0 && s.calls.hadCall() && !p.claimedSlots[other] // without a call yet: about to be used
		if idle && other.isExtra() && other.group() == k.group() &&
			(oldest == nil || s.lastUsed.Before(oldest.lastUsed)) {
			oldest = s
		}
	}
	if oldest != nil {
		delete(p.live, oldest.key)
		oldest.markLost(errIdle)
	}
	return false
}

// resizeGroupLocked adds n to the size of the key's group.
func (p *sessionSet) resizeGroupLocked(k sessionKey, n int) {
	if !k.isExtra() {
		return
	}
	c := k.group()
	if p.groupSizes[c] += n; p.groupSizes[c] == 0 {
		delete(p.groupSizes, c)
	}
	if n < 0 {
		p.wakeWaitersLocked()
	}
}
