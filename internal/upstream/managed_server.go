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

// A managedServer is one server of the fleet. It has a primary session, which is kept and listed, and extra sessions
// for callers that cannot share it. Each session has one goroutine that opens, watches and closes it.
//
// It holds the configuration and the lifetime. What changes is in parts with a lock each; see sessionSet for the order
// of locks.
type managedServer struct {
	pool   *Pool
	config config.Server
	log    *slog.Logger
	// fingerprint is the server's key in the pool, environ the environment that its processes get theirs from.
	fingerprint string
	environ     []string
	// fleets are the fleets that use the server. notifyMu is held while they receive a listing, so that no fleet gets
	// an older one later.
	fleets   observerList[*Fleet]
	notifyMu sync.Mutex
	ctx      context.Context // ends with the server
	cancel   context.CancelFunc
	workers  workerGroup
	signals  primarySignals

	sessions      sessionSet
	watch         serverWatch
	listing       serverListing
	health        serverHealth
	notifications notificationLog
	elicitations  interop.ElicitationQueue
	redactor      secretRedactor // the secrets that the server was given
}

// primarySignals are what the primary loop waits for.
type primarySignals struct {
	// relist makes it list the server again, rewatch apply the watch set, and retryNow try mounting at once.
	relist, rewatch, retryNow chan struct{}
	// idleCheck makes it check whether the session is idle.
	idleCheck chan struct{}
	// relistRequests makes it list the server again and send the error. The channels sent have room for it.
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
	return e
}

// primaryKey returns the key of the primary session.
func (e *managedServer) primaryKey() sessionKey { return e.sessions.primary }

// mount opens the primary session unless it exists.
func (e *managedServer) mount() {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	if e.sessions.live[e.primaryKey()] == nil {
		e.requestSession(e.primaryKey(), nil)
	}
}

// requestSession returns the opening of a session, and starts it if necessary. It needs sessions.mu.
func (e *managedServer) requestSession(k sessionKey, opener *drawbridge.Call) *sessionOpening {
	p := &e.sessions
	if o := p.openings[k]; o != nil {
		return o
	}
	o := &sessionOpening{ready: make(chan struct{}), listed: make(chan struct{})}
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

// publishSession makes a session usable. The opening of the primary session goes on until it is listed. It needs
// sessions.mu.
func (e *managedServer) publishSession(o *sessionOpening, s *session) {
	e.sessions.publishLocked(o, s)
	if s.key.sharedByKind {
		wakeOne(e.signals.idleCheck)
	}
}

// closeSession closes a session, for at most limit.
func (e *managedServer) closeSession(s *session, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), limit)
	defer cancel()
	s.close(ctx)
	e.saveDiagnostics(s)
}

// closeTimeout returns the bound of an orderly close of a session.
func (e *managedServer) closeTimeout() time.Duration {
	return 3*e.pool.o.CloseGrace + quickCloseTimeout
}

// quickCloseTimeout bounds the close of a session that is of no more use.
const quickCloseTimeout = 250 * time.Millisecond

// saveDiagnostics keeps the standard error and the junk count of a session that ended.
func (e *managedServer) saveDiagnostics(s *session) {
	var lines []string
	if s.proc != nil {
		lines = s.proc.Stderr()
	}
	e.health.noteEnded(int(s.junk.Swap(0)), lines, s.proc != nil && s.isPrimary())
}

// shutDown starts the end of the server and of all its sessions.
func (e *managedServer) shutDown() {
	e.workers.end()
	e.cancel()
}

// waitForCalls waits until no call is in flight or the server ends.
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
