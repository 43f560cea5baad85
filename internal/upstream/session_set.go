package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// A sessionSet holds the sessions of one server: those that are open, those that are being opened, and what decides
// which session a call gets. It is one type because these change together:
//
//   - A session is published, and its opening ended, in one step. A key without a session and without an opening is
//     free.
//   - A server that sends requests takes its callers off shared sessions. None is published or borrowed after that.
//   - The use count of a session and the slots and groups are changed with the session, so that none is ended in use.
//
// Two rules lead to the other parts of a server:
//
//   - The opening of the primary session ends after its listing was stored. Code that finds no listing while it holds
//     mu therefore finds that opening, if there is one, and no second one is made.
//   - A watch set is changed before its fleet looks for the primary session, and read with mu held before an idle one
//     is ended. So a watched session stays, or the fleet opens another.
//
// Its lock is taken before those of the watch set, the listing, the health, the workers and the calls of a session, and
// after no other lock of the server. The methods named Locked need mu; it guards the fields of each session that say
// so, too.
type sessionSet struct {
	primary  sessionKey // of the primary session
	overHTTP bool       // sessions take no process

	mu             sync.Mutex
	live           map[sessionKey]*session
	openings       map[sessionKey]*sessionOpening
	primaryRunning bool // runPrimary runs
	// claimedSlots are the slots in use; slotFreed is closed and replaced when one is freed.
	claimedSlots map[sessionKey]bool
	slotFreed    chan struct{}
	// drained is closed when the last call has ended; nil unless waitForCalls waits.
	drained chan struct{}
	// failures are the recent failed openings. groupSizes counts the sessions of each group until they are closed.
	failures   recentFailures[sessionKey]
	groupSizes map[sessionGroup]int
	era        drawbridge.ProtocolEra // the eras that the server speaks; 0 while unknown
	// sessionlessLegacy is set if the server speaks both eras and keeps no sessions in the stateful one: it cannot send
	// requests there.
	sessionlessLegacy bool
	// asksClients is set once the server has sent a client a request.
	asksClients bool
}

// A sessionOpening is a session that is being opened.
type sessionOpening struct {
	ctx    context.Context
	cancel context.CancelFunc
	// ready is closed when the session can be used, or err is set.
	ready chan struct{}
	err   error
	// listed is closed after ready. For the primary session that is when it is listed, or fault is set.
	listed chan struct{}
	fault  error
}

func newSessionSet(primary sessionKey, overHTTP, asksClients bool) sessionSet {
	return sessionSet{primary: primary, overHTTP: overHTTP, asksClients: asksClients,
		live: map[sessionKey]*session{}, openings: map[sessionKey]*sessionOpening{},
		claimedSlots: map[sessionKey]bool{}, groupSizes: map[sessionGroup]int{}, slotFreed: make(chan struct{})}
}

// A sessionGroup identifies sessions counted against one bound: one principal's, for its stateless callers or for its
// stateful ones.
type sessionGroup struct {
	principal string
	private   bool
}

func (k sessionKey) group() sessionGroup { return sessionGroup{k.principal, k.session != ""} }

// isExtra reports whether the session counts against its group's bound.
func (k sessionKey) isExtra() bool { return k.session != "" || k.clientKind != "" }

// primaryEraLocked returns the era of the primary session: stateless if the server speaks both.
func (p *sessionSet) primaryEraLocked() drawbridge.ProtocolEra {
	if p.era.Has(drawbridge.Modern) {
		return drawbridge.Modern
	}
	return p.era
}

// knownEra returns the eras that the server is known to speak.
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

// primaryProcess returns the process of the primary session, or of one that took its place; nil if there is none.
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

// publishLocked makes a session usable. The opening of the primary session goes on until it is listed.
func (p *sessionSet) publishLocked(o *sessionOpening, s *session) {
	p.live[s.key] = s
	p.failures.forget(s.key)
	close(o.ready)
}

// finishLocked ends an opening, with err or successfully.
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

// remove takes a session out of use.
func (p *sessionSet) remove(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live[s.key] == s {
		delete(p.live, s.key)
	}
}

// endCallerSession ends the private sessions of a caller's session, and those that are being opened.
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

// markAsksClients records that the server sends requests: from now on callers that accept requests get private
// sessions.
func (p *sessionSet) markAsksClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asksClients = true
	for _, s := range p.live {
		p.retireSharedLocked(s)
	}
}

// retireSharedLocked ends an unused shared session whose callers now have private ones.
func (p *sessionSet) retireSharedLocked(s *session) {
	if s.key.sharedByKind && p.asksClients && s.borrowed == 0 {
		delete(p.live, s.key)
		s.markLost(errIdle)
	}
}

// giveBack ends the use of a borrowed session, see managedServer.returnSession.
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
		p.wakeWaitersLocked() // it may make room now
	}
	p.releaseSlotLocked(s.key)
}

// whenIdle returns a channel that is closed when no call is in flight, or nil if none is now.
func (p *sessionSet) whenIdle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hasNoCallsLocked() {
		return nil
	}
	p.drained = make(chan struct{})
	return p.drained
}

// hasNoCallsLocked reports whether no session is borrowed.
func (p *sessionSet) hasNoCallsLocked() bool {
	for _, s := range p.live {
		if s.borrowed > 0 {
			return false
		}
	}
	return true
}

// isPrimaryUnusedLocked reports whether the primary session is a process that no caller uses.
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

// claimSlotLocked returns the key of the session for a call. Of a key with slots it claims the first free one until
// releaseSlotLocked. It returns false when all slots are in use.
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

// releaseSlot frees a claimed slot.
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

// wakeWaitersLocked wakes calls that wait for a slot or for room.
func (p *sessionSet) wakeWaitersLocked() {
	close(p.slotFreed)
	p.slotFreed = make(chan struct{})
}

// canUseLocked reports whether a call has a session to use, or one may be opened.
func (p *sessionSet) canUseLocked(k sessionKey) bool {
	if s := p.live[k]; s != nil && !s.isOver() || p.openings[k] != nil {
		return true
	}
	return p.makeRoomLocked(k)
}

// makeRoomLocked reports whether one more session may be opened. At the bound it ends the session that was idle
// longest; there is room once that has ended.
func (p *sessionSet) makeRoomLocked(k sessionKey) bool {
	if !k.isExtra() || p.groupSizes[k.group()] < p.maxGroupSessions(k) {
		return true
	}
	var oldest *session
	for other, s := range p.live {
		idle := s.borrowed == 0 && s.calls.hadCall() && !p.claimedSlots[other] // one that has not begun is about to
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
