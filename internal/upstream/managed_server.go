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
	// Signals to the primary loop: relistSignal to list the server again, rewatchSignal to apply the watch set,
	// retryNow to try mounting at once.
	relistSignal, rewatchSignal, retryNow chan struct{}
	// idleCheck makes the primary loop check whether the session is idle.
	idleCheck chan struct{}
	// relistRequests makes the primary loop list the server again and send the error. The channels sent have room for
	// it.
	relistRequests chan chan<- error
	// firstAttemptDone is closed when the first attempt to mount has ended.
	firstAttemptDone chan struct{}

	mu             sync.Mutex
	ended          bool
	work           sync.WaitGroup // every goroutine; grows under mu, and not after ended
	primaryRunning bool           // runPrimary runs
	sessions       map[sessionKey]*session
	openings       map[sessionKey]*sessionOpening
	watch          watchState
	// claimedSlots are the slots in use; slotFreed is closed and replaced when one is freed.
	claimedSlots map[sessionKey]bool
	slotFreed    chan struct{}
	// drained is closed when the last call has ended; nil unless waitForCalls waits.
	drained chan struct{}

	// failures are the recent failed openings. groupSizes counts the sessions of each group until they are closed.
	failures   recentFailures[sessionKey]
	groupSizes map[sessionGroup]int

	// What is known of the server, and the secrets it was given.
	era      drawbridge.ProtocolEra
	redactor secretRedactor
	// sessionlessLegacy is set if the server speaks both eras and keeps no sessions in the stateful one: it cannot send
	// requests there.
	sessionlessLegacy bool
	// asksClients is set once the server has sent a client a request.
	asksClients   bool
	listing       *drawbridge.Listing
	listedThisRun bool         // the listing is of this process
	budget        relistBudget // used by the primary loop
	tools         toolTraits

	// What Status reports beside that.
	phase         drawbridge.ServerPhase
	lastFault     string
	confinement   string // what its program is confined from, in words
	signInURL     string // where a person signs in, while that is the fault
	declineReason string // why the server was declined to ask people; empty where it was not
	// leftOut describes items of the last listing that no client is shown.
	leftOut       []string
	elicitations  interop.ElicitationQueue
	missingValues []string // values that could not be resolved
	loggedFault   string   // the fault that was logged, until the server is well: each attempt again brings the same
	startMillis   int64
	junkLines     int
	stderr        []string
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

func newManagedServer(p *Pool, row config.Server, fingerprint string, part FleetOptions) *managedServer {
	e := &managedServer{
		pool: p, config: row, fingerprint: fingerprint, environ: part.Environ, log: p.o.Logger.With("server",
			string(row.ID)),
		relistSignal: make(chan struct{}, 1), rewatchSignal: make(chan struct{}, 1), retryNow: make(chan struct{}, 1),
		idleCheck:        make(chan struct{}, 1),
		firstAttemptDone: make(chan struct{}), relistRequests: make(chan chan<- error),
		sessions: map[sessionKey]*session{}, openings: map[sessionKey]*sessionOpening{},
		claimedSlots: map[sessionKey]bool{}, groupSizes: map[sessionGroup]int{}, slotFreed: make(chan struct{}),
		watch: newWatchState(),
		phase: drawbridge.Idle,
	}
	if last, ok := part.LastStatuses[row.Hash]; ok {
		e.lastFault, e.stderr, e.startMillis, e.asksClients, e.confinement = last.Fault, last.Stderr, last.StartMillis,
			last.Asks, last.Confined
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if known, ok := part.KnownListings[row.Hash]; ok && row.Hash != "" {
		e.era, e.listing = known.Era, &known
		e.tools = parseToolTraits(known.Tools, row.URL != "")
	}
	return e
}

// primaryKey returns the key of the primary session.
func (e *managedServer) primaryKey() sessionKey { return sessionKey{principal: e.pool.o.Principal} }

// primaryEra returns the era of the primary session: stateless if the server speaks both. It needs mu.
func (e *managedServer) primaryEra() drawbridge.ProtocolEra {
	if e.era.Has(drawbridge.Modern) {
		return drawbridge.Modern
	}
	return e.era
}

// startWorker runs work in a goroutine that the ends of server and fleet wait for. It returns false if the server has
// ended. It needs mu.
func (e *managedServer) startWorker(work func()) bool {
	if e.ended {
		return false
	}
	e.work.Add(1)
	ok := e.pool.startWorker(func() {
		defer e.work.Done()
		work()
	})
	if !ok {
		e.work.Done()
	}
	return ok
}

// mount opens the primary session unless it exists.
func (e *managedServer) mount() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[e.primaryKey()] == nil {
		e.requestSession(e.primaryKey(), nil)
	}
}

// requestSession returns the opening of a session, and starts it if necessary. It needs mu.
func (e *managedServer) requestSession(k sessionKey, opener *drawbridge.Call) *sessionOpening {
	if o := e.openings[k]; o != nil {
		return o
	}
	o := &sessionOpening{ready: make(chan struct{}), listed: make(chan struct{})}
	o.ctx, o.cancel = context.WithCancel(e.ctx)
	e.openings[k] = o
	switch {
	case k == e.primaryKey() && e.primaryRunning:
		wakeOne(e.retryNow)
	case k == e.primaryKey():
		if e.primaryRunning = e.startWorker(e.runPrimary); !e.primaryRunning {
			e.finishOpening(k, o, e.notRunningFault())
		}
	default:
		e.adjustGroupSize(k, 1)
		if !e.startWorker(func() { e.runExtra(k, o, opener) }) {
			e.adjustGroupSize(k, -1)
			e.finishOpening(k, o, e.notRunningFault())
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

// publishSession makes a session usable. The opening of the primary session goes on until it is listed. It needs mu.
func (e *managedServer) publishSession(o *sessionOpening, s *session) {
	e.sessions[s.key] = s
	if s.key.sharedByKind {
		wakeOne(e.idleCheck)
	}
	e.failures.forget(s.key)
	close(o.ready)
}

// finishOpening ends an opening, with err or successfully. It needs mu.
func (e *managedServer) finishOpening(k sessionKey, o *sessionOpening, err error) {
	o.fault = err
	if !isClosed(o.ready) {
		o.err = err
		close(o.ready)
	}
	close(o.listed)
	o.cancel()
	delete(e.openings, k)
}

// removeSession takes a session out of use.
func (e *managedServer) removeSession(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.key] == s {
		delete(e.sessions, s.key)
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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.junkLines += int(s.junk.Swap(0))
	if s.proc == nil {
		return
	}
	if lines := s.proc.Stderr(); len(lines) > 0 || s.isPrimary() {
		e.stderr = lines
	}
}

// shutDown starts the end of the server and of all its sessions.
func (e *managedServer) shutDown() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.cancel()
}

// waitForCalls waits until no call is in flight or the server ends.
func (e *managedServer) waitForCalls() {
	e.mu.Lock()
	if e.hasNoCalls() {
		e.mu.Unlock()
		return
	}
	e.drained = make(chan struct{})
	calm := e.drained
	e.mu.Unlock()
	limit := time.NewTimer(maxCallDuration(e.callTimeout()))
	defer limit.Stop()
	select {
	case <-calm:
	case <-limit.C:
	case <-e.ctx.Done():
	}
}

// hasNoCalls reports whether no session is borrowed. It needs mu.
func (e *managedServer) hasNoCalls() bool {
	for _, s := range e.sessions {
		if s.borrowed > 0 {
			return false
		}
	}
	return true
}
