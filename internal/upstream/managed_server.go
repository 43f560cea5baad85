package upstream

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
)

// A managedServer is one server of the pool. It has a primary session, which is kept open and on which the server is
// listed. It has extra sessions for callers that cannot share the primary session. Each session has one goroutine that
// opens, watches and closes it.
//
// The fields config and ctx do not change. The state is divided into parts, each with its own lock; see sessionSet for
// the order of locks.
type managedServer struct {
	pool   *Pool
	config config.Server
	log    *slog.Logger
	// fingerprint is the server's key in the pool. environ is the environment from which the environment of its
	// processes is made.
	fingerprint string
	environ     []string
	// startsLate is set if the last attempt to mount the server failed: other servers start before it.
	startsLate bool
	// fleets are the fleets that use the server. notifyMu is held while the fleets receive a listing, so that each
	// fleet receives the listings in order.
	fleets   observerList[*Fleet]
	notifyMu sync.Mutex
	ctx      context.Context // done when the server is shut down
	cancel   context.CancelFunc
	workers  workerGroup
	signals  primarySignals

	sessions      sessionSet
	watch         serverWatch
	listing       serverListing
	health        serverHealth
	notifications notificationLog
	elicitations  interop.ElicitationQueue
	redactor      secretRedactor // the secrets that were passed to the server
}

// primarySignals are the channels on which the primary loop receives signals.
type primarySignals struct {
	// relist makes the loop list the server again, rewatch makes it apply the watch set, and retryNow makes it retry
	// mounting at once.
	relist, rewatch, retryNow chan struct{}
	// idleCheck makes the loop check whether the session is idle.
	idleCheck chan struct{}
	// relistRequests makes the loop list the server again and send the error on the received channel. That channel must
	// be buffered.
	relistRequests chan chan<- error
}

func newPrimarySignals() primarySignals {
	return primarySignals{relist: make(chan struct{}, 1), rewatch: make(chan struct{}, 1),
		retryNow: make(chan struct{}, 1), idleCheck: make(chan struct{}, 1), relistRequests: make(chan chan<- error)}
}

func newManagedServer(p *Pool, row config.Server, fingerprint string, part FleetOptions) *managedServer {
	last := part.LastStatuses[row.Hash]
	e := &managedServer{
		pool: p, config: row, fingerprint: fingerprint, environ: part.Environ,
		log:      p.o.Logger.With("server", string(row.ID)),
		workers:  workerGroup{pool: p},
		signals:  newPrimarySignals(),
		sessions: newSessionSet(sessionKey{principal: p.o.Principal}, row.URL != "", last.Asks),
		health:   newServerHealth(last),
	}
	e.watch = newServerWatch(e.signals.rewatch)
	e.ctx, e.cancel = context.WithCancel(p.ctx)
	if known, ok := part.KnownListings[row.Hash]; ok && row.Hash != "" {
		e.sessions.era = known.Era
		e.listing = newServerListing(&known, row.URL != "")
	}
	listed, _ := e.listing.get()
	e.startsLate = last.Phase == drawbridge.Faulted || last.Phase != "" && listed == nil
	return e
}

// primaryKey returns the key of the primary session.
func (e *managedServer) primaryKey() sessionKey { return e.sessions.primary }

// mount opens the primary session, unless it is open or being opened. It does not wait until the session is open.
func (e *managedServer) mount() {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	if e.sessions.live[e.primaryKey()] == nil {
		e.requestSession(e.primaryKey(), nil)
	}
}

// requestSession returns the opening of a session, and starts an opening if there is none. sessions.mu must be held.
func (e *managedServer) requestSession(k sessionKey, opener *drawbridge.Call) *sessionOpening {
	p := &e.sessions
	if o := p.openings[k]; o != nil {
		return o
	}
	o := &sessionOpening{ready: make(chan struct{}), listed: make(chan struct{}), urgent: make(chan struct{})}
	o.ctx, o.cancel = context.WithCancel(e.ctx)
	p.openings[k] = o
	switch {
	case k == p.primary && p.primaryRunning:
		wakeOne(e.signals.retryNow)
	case k == p.primary:
		if p.primaryRunning = e.workers.start(e.runPrimary); !p.primaryRunning {
			p.finishLocked(k, o, e.notRunningFault())
		}
	default:
		p.resizeGroupLocked(k, 1)
		if !e.workers.start(func() { e.runExtra(k, o, opener) }) {
			p.resizeGroupLocked(k, -1)
			p.finishLocked(k, o, e.notRunningFault())
		}
	}
	return o
}

func (e *managedServer) notRunningFault() error {
	if e.pool.isRunning() {
		return e.mountFault("start", errRemoved)
	}
	return e.mountFault("start", errNotRunning)
}

// publishSession makes a session usable for calls. The opening of the primary session continues until the server is
// listed. sessions.mu must be held.
func (e *managedServer) publishSession(o *sessionOpening, s *session) {
	e.sessions.publishLocked(o, s)
	if s.key.sharedByKind {
		wakeOne(e.signals.idleCheck)
	}
}

// closeSession closes a session within limit, and stores its diagnostics.
func (e *managedServer) closeSession(s *session, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), limit)
	defer cancel()
	s.close(ctx)
	e.saveDiagnostics(s)
}

// closeTimeout returns the time limit for an orderly close of a session.
func (e *managedServer) closeTimeout() time.Duration {
	return 3*e.pool.o.CloseGrace + quickCloseTimeout
}

// quickCloseTimeout is the time limit for closing a session that is lost or failed.
const quickCloseTimeout = 250 * time.Millisecond

// saveDiagnostics stores the standard error and the count of junk lines of a session that ended.
func (e *managedServer) saveDiagnostics(s *session) {
	var lines []string
	if s.proc != nil {
		lines = s.proc.Stderr()
	}
	e.health.noteEnded(int(s.junk.Swap(0)), lines, s.proc != nil && s.isPrimary())
}

// shutDown starts to end the server and all its sessions, and does not wait.
func (e *managedServer) shutDown() {
	e.workers.end()
	e.cancel()
}

// waitForCalls waits until no call is in flight, the server ends, or the longest duration of a call has passed.
func (e *managedServer) waitForCalls() {
	calm := e.sessions.whenIdle()
	if calm == nil {
		return
	}
	limit := time.NewTimer(maxCallDuration(e.callTimeout()))
	defer limit.Stop()
	select {
	case <-calm:
	case <-limit.C:
	case <-e.ctx.Done():
	}
}
