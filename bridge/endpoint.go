package bridge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/again"
	"github.com/drawbridge-mcp/drawbridge/bridge/ear"
	"github.com/drawbridge-mcp/drawbridge/bridge/exchange"
	"github.com/drawbridge-mcp/drawbridge/bridge/survey"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/bridge/values"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An endpoint is one server of the fleet. It has a home, the session that is kept and listed, and sessions for callers
// who cannot share that one. Each session has a keeper: the goroutine that opens, watches and closes it.
type endpoint struct {
	pool *Pool
	row  config.Server
	log  *slog.Logger
	// fingerprint is what the pool knows the endpoint by, environ what its processes get their environment from.
	fingerprint string
	environ     []string
	// sharing are the fleets that have a part in the server. telling is held while they hear of a listing, so that none hears of an
	// older one later.
	sharing ear.Audience[*Fleet]
	telling sync.Mutex
	ctx     context.Context // ends with the endpoint
	cancel  context.CancelFunc
	// changed has the home's keeper list the server again, rewatch look at what is watched, kick try at once.
	changed, rewatch, kick chan struct{}
	// spared has the home's keeper see whether anybody needs it.
	spared chan struct{}
	// anew has the home's keeper list the server again for somebody who waits for what comes of it. There is room for the answer.
	anew chan chan<- error
	// tried is closed when the first attempt to mount has ended.
	tried chan struct{}

	mu       sync.Mutex
	ended    bool
	work     sync.WaitGroup // every goroutine; grows under mu, and not after ended
	keeping  bool           // the home has a keeper
	sessions map[key]*session
	openings map[key]*opening
	watch    watch
	// claimed are the lanes in use; freed is closed and made anew when one is not any more.
	claimed map[key]bool
	freed   chan struct{}
	// calm is closed when the last call has ended, where somebody waits for that.
	calm chan struct{}

	// failures are the attempts that went wrong a moment ago; crowds counts the sessions of each, until they are closed.
	failures again.Failures[key]
	crowds   map[crowd]int

	// What is known of the server, and what it was given that nobody else is to see.
	era  drawbridge.Era
	veil values.Veil
	// forgetful says that the server speaks both generations, and the stateful one without sessions: it can ask nobody there.
	forgetful bool
	// asks says that the server has asked a client something.
	asks    bool
	listing *drawbridge.Listing
	fresh   bool          // the listing is of this process
	budget  survey.Budget // the keeper's
	tools   survey.Tools

	// What Status tells beside that.
	phase       drawbridge.Phase
	fault       string
	confined    string // what its program is kept from, in words
	signIn      string // where a person signs in, while that is what the fault is
	declined    string // why the server was declined to ask people; empty where it was not
	forms       talk.Desk
	missing     []string // values that commands did not give
	said        string   // the fault that was logged, until the server is well: each attempt again brings the same
	startMillis int64
	junk        int
	stderr      []string
}

// An opening is a session that somebody waits for.
type opening struct {
	ctx    context.Context
	cancel context.CancelFunc
	// ready is closed when the session can be used, or err says why there is none.
	ready chan struct{}
	err   error
	// listed is closed after ready: for the home, when it is listed too, or fault says why it is not.
	listed chan struct{}
	fault  error
}

func newEndpoint(p *Pool, row config.Server, fingerprint string, part Part) *endpoint {
	e := &endpoint{
		pool: p, row: row, fingerprint: fingerprint, environ: part.Environ, log: p.o.Logger.With("server", string(row.ID)),
		changed: make(chan struct{}, 1), rewatch: make(chan struct{}, 1), kick: make(chan struct{}, 1), spared: make(chan struct{}, 1),
		tried: make(chan struct{}), anew: make(chan chan<- error),
		sessions: map[key]*session{}, openings: map[key]*opening{},
		claimed: map[key]bool{}, crowds: map[crowd]int{}, freed: make(chan struct{}),
		watch: newWatch(),
		phase: drawbridge.Idle,
	}
	if last, ok := part.Last[row.Hash]; ok {
		e.fault, e.stderr, e.startMillis, e.asks, e.confined = last.Fault, last.Stderr, last.StartMillis, last.Asks, last.Confined
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if known, ok := part.Known[row.Hash]; ok && row.Hash != "" {
		e.era, e.listing = known.Era, &known
		e.tools = survey.ToolsOf(known.Tools, row.URL != "")
	}
	return e
}

// homeKey is the key of the session that is kept and listed.
func (e *endpoint) homeKey() key { return key{principal: e.pool.o.Principal} }

// homeEra is what is spoken there: the modern generation where the server speaks both. It needs mu.
func (e *endpoint) homeEra() drawbridge.Era {
	if e.era.Has(drawbridge.Modern) {
		return drawbridge.Modern
	}
	return e.era
}

// start runs work in a goroutine that both the endpoint's end and the fleet's wait for. It needs mu.
func (e *endpoint) start(work func()) bool {
	if e.ended {
		return false
	}
	e.work.Add(1)
	ok := e.pool.start(func() {
		defer e.work.Done()
		work()
	})
	if !ok {
		e.work.Done()
	}
	return ok
}

// mount has the server mounted, unless it is.
func (e *endpoint) mount() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[e.homeKey()] == nil {
		e.want(e.homeKey(), nil)
	}
}

// want gives the opening of a session, and begins it where nobody has. It needs mu.
func (e *endpoint) want(k key, opener *drawbridge.Call) *opening {
	if o := e.openings[k]; o != nil {
		return o
	}
	o := &opening{ready: make(chan struct{}), listed: make(chan struct{})}
	o.ctx, o.cancel = context.WithCancel(e.ctx)
	e.openings[k] = o
	switch {
	case k == e.homeKey() && e.keeping:
		signal(e.kick)
	case k == e.homeKey():
		if e.keeping = e.start(e.keepHome); !e.keeping {
			e.settle(k, o, e.notRunning())
		}
	default:
		e.crowdBy(k, 1)
		if !e.start(func() { e.keepOther(k, o, opener) }) {
			e.crowdBy(k, -1)
			e.settle(k, o, e.notRunning())
		}
	}
	return o
}

func (e *endpoint) notRunning() error {
	if e.pool.runs() {
		return e.mountFault("start", errRemoved)
	}
	return e.mountFault("start", errNotRunning)
}

// opened makes a session usable. For the home the opening goes on until it is settled. It needs mu.
func (e *endpoint) opened(o *opening, s *session) {
	e.sessions[s.key] = s
	if s.key.lasting {
		signal(e.spared)
	}
	e.failures.Forget(s.key)
	close(o.ready)
}

// settle ends an opening: with err, or well where err is nil. It needs mu.
func (e *endpoint) settle(k key, o *opening, err error) {
	o.fault = err
	if !isClosed(o.ready) {
		o.err = err
		close(o.ready)
	}
	close(o.listed)
	o.cancel()
	delete(e.openings, k)
}

// withdraw has nobody use a session from now on.
func (e *endpoint) withdraw(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.key] == s {
		delete(e.sessions, s.key)
	}
}

// close ends a session. When the fleet is in a hurry, or the session is broken anyway, it is not waited for long.
func (e *endpoint) close(s *session, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), limit)
	defer cancel()
	s.close(ctx)
	e.keepTail(s)
}

// closeLimit bounds the orderly end of a session.
func (e *endpoint) closeLimit() time.Duration { return 3*e.pool.o.CloseGrace + closeSoon }

// closeSoon bounds the end of a session that is of no use any more.
const closeSoon = 250 * time.Millisecond

// keepTail remembers what people may ask for after a session's end.
func (e *endpoint) keepTail(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.junk += int(s.junk.Swap(0))
	if s.proc == nil {
		return
	}
	if lines := s.proc.Stderr(); len(lines) > 0 || s.home() {
		e.stderr = lines
	}
}

// end begins the end of everything of the server.
func (e *endpoint) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.cancel()
}

// drain waits until no call is in flight, or the endpoint ends.
func (e *endpoint) drain() {
	e.mu.Lock()
	if e.idle() {
		e.mu.Unlock()
		return
	}
	e.calm = make(chan struct{})
	calm := e.calm
	e.mu.Unlock()
	limit := time.NewTimer(exchange.Longest(e.limit()))
	defer limit.Stop()
	select {
	case <-calm:
	case <-limit.C:
	case <-e.ctx.Done():
	}
}

// idle says whether nobody has borrowed a session. It needs mu.
func (e *endpoint) idle() bool {
	for _, s := range e.sessions {
		if s.busy > 0 {
			return false
		}
	}
	return true
}
