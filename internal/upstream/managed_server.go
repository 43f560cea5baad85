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

// An managedServer is one server of the fleet. It has a home, the session that is kept and listed, and sessions for
// callers who cannot share that one. Each session has a keeper: the goroutine that opens, watches and closes it.
type managedServer struct {
	pool   *Pool
	config config.Server
	log    *slog.Logger
	// fingerprint is what the pool knows the endpoint by, environ what its processes get their environment from.
	fingerprint string
	environ     []string
	// fleets are the fleets that have a part in the server. telling is held while they hear of a listing, so that none
	// hears of an older one later.
	fleets   observerList[*Fleet]
	notifyMu sync.Mutex
	ctx      context.Context // ends with the endpoint
	cancel   context.CancelFunc
	// relistSignal has the home's keeper list the server again, rewatch look at what is watched, kick try at once.
	relistSignal, rewatchSignal, retryNow chan struct{}
	// idleCheck has the home's keeper see whether anybody needs it.
	idleCheck chan struct{}
	// relistRequests has the home's keeper list the server again for somebody who waits for what comes of it. There is
	// room for the answer.
	relistRequests chan chan<- error
	// firstAttemptDone is closed when the first attempt to mount has ended.
	firstAttemptDone chan struct{}

	mu             sync.Mutex
	ended          bool
	work           sync.WaitGroup // every goroutine; grows under mu, and not after ended
	primaryRunning bool           // the home has a keeper
	sessions       map[sessionKey]*session
	openings       map[sessionKey]*sessionOpening
	watch          watchState
	// claimedSlots are the lanes in use; freed is closed and made anew when one is not any more.
	claimedSlots map[sessionKey]bool
	slotFreed    chan struct{}
	// drained is closed when the last call has ended, where somebody waits for that.
	drained chan struct{}

	// failures are the attempts that went wrong a moment ago; crowds counts the sessions of each, until they are
	// closed.
	failures   recentFailures[sessionKey]
	groupSizes map[sessionGroup]int

	// What is known of the server, and what it was given that nobody else is to see.
	era      drawbridge.ProtocolEra
	redactor secretRedactor
	// sessionlessLegacy says that the server speaks both generations, and the stateful one without sessions: it can
	// ask nobody there.
	sessionlessLegacy bool
	// asksClients says that the server has asked a client something.
	asksClients   bool
	listing       *drawbridge.Listing
	listedThisRun bool         // the listing is of this process
	budget        relistBudget // the keeper's
	tools         toolTraits

	// What Status tells beside that.
	phase         drawbridge.ServerPhase
	lastFault     string
	confinement   string // what its program is kept from, in words
	signInURL     string // where a person signs in, while that is what the fault is
	declineReason string // why the server was declined to ask people; empty where it was not
	elicitations  interop.ElicitationQueue
	missingValues []string // values that commands did not give
	loggedFault   string   // the fault that was logged, until the server is well: each attempt again brings the same
	startMillis   int64
	junkLines     int
	stderr        []string
}

// An sessionOpening is a session that somebody waits for.
type sessionOpening struct {
	ctx    context.Context
	cancel context.CancelFunc
	// ready is closed when the session can be used, or err says why there is none.
	ready chan struct{}
	err   error
	// listed is closed after ready: for the home, when it is listed too, or fault says why it is not.
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

// primaryKey is the key of the session that is kept and listed.
func (e *managedServer) primaryKey() sessionKey { return sessionKey{principal: e.pool.o.Principal} }

// primaryEra is what is spoken there: the modern generation where the server speaks both. It needs mu.
func (e *managedServer) primaryEra() drawbridge.ProtocolEra {
	if e.era.Has(drawbridge.Modern) {
		return drawbridge.Modern
	}
	return e.era
}

// startWorker runs work in a goroutine that both the endpoint's end and the fleet's wait for. It needs mu.
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

// mount has the server mounted, unless it is.
func (e *managedServer) mount() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[e.primaryKey()] == nil {
		e.requestSession(e.primaryKey(), nil)
	}
}

// requestSession gives the opening of a session, and begins it where nobody has. It needs mu.
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

// publishSession makes a session usable. For the home the opening goes on until it is settled. It needs mu.
func (e *managedServer) publishSession(o *sessionOpening, s *session) {
	e.sessions[s.key] = s
	if s.key.sharedByKind {
		wakeOne(e.idleCheck)
	}
	e.failures.forget(s.key)
	close(o.ready)
}

// finishOpening ends an opening: with err, or well where err is nil. It needs mu.
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

// removeSession has nobody use a session from now on.
func (e *managedServer) removeSession(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.key] == s {
		delete(e.sessions, s.key)
	}
}

// closeSession ends a session. When the fleet is in a hurry, or the session is broken anyway, it is not waited for
// long.
func (e *managedServer) closeSession(s *session, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), limit)
	defer cancel()
	s.close(ctx)
	e.saveDiagnostics(s)
}

// closeTimeout bounds the orderly end of a session.
func (e *managedServer) closeTimeout() time.Duration {
	return 3*e.pool.o.CloseGrace + quickCloseTimeout
}

// quickCloseTimeout bounds the end of a session that is of no use any more.
const quickCloseTimeout = 250 * time.Millisecond

// saveDiagnostics remembers what people may ask for after a session's end.
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

// shutDown begins the end of everything of the server.
func (e *managedServer) shutDown() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.cancel()
}

// waitForCalls waits until no call is in flight, or the endpoint ends.
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

// hasNoCalls says whether nobody has borrowed a session. It needs mu.
func (e *managedServer) hasNoCalls() bool {
	for _, s := range e.sessions {
		if s.borrowed > 0 {
			return false
		}
	}
	return true
}
