package upstream

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A sessionKey says whose a session is: callers with the same key share it.
type sessionKey struct {
	// era is zero for the endpoint's home, the session that is kept and listed: what it speaks is found out.
	era       drawbridge.ProtocolEra
	principal string
	// session is the caller's own session, for one who shares with nobody.
	session string
	// clientKind is what stateless callers say of themselves, for a session that was opened with that; lane tells
	// those apart that have one call at a time, and is zero for one that calls share.
	clientKind string
	slot       int
	// singleUse says that the session ends with its first call, lasting that it is for stateful callers of a kind, who
	// share it for as long as they like.
	singleUse, sharedByKind bool
}

// A session is one live connection with a server, greeted and ready for calls.
type session struct {
	server *managedServer
	key    sessionKey
	// openingCall is the call that a session of its own was opened for; nil for shared ones.
	openingCall *drawbridge.Call

	conn transport.Conn
	proc *process.Process // nil for a server over HTTP
	junk atomic.Int64

	// What the greeting brought.
	era                drawbridge.ProtocolEra // what is spoken here
	version            string
	info, capabilities json.RawMessage
	instructions       string
	hint               *drawbridge.CacheHint

	// lost is closed when the session is not to be used any more.
	lost     chan struct{}
	loseOnce sync.Once
	cause    error // set before lost is closed

	called         bool   // there was a call; guarded by e.mu
	firstCaller    string // the session of the first caller, and whether there were others; guarded by e.mu
	severalCallers bool
	levelMu        sync.Mutex // is held while the level is set
	logLevel       string     // of log lines, as the server was told it

	// The rest is guarded by e.mu. opening is the home's, which ends when what it lists was told, and unlisted why its
	// tools are only known from before.
	opening  *sessionOpening
	listErr  error
	borrowed int             // how many borrowed the session
	calls    []*inFlightCall // the calls in flight, newest last
	lastUsed time.Time
}

var _ transport.Handler = (*session)(nil)
var _ callWaker = (*session)(nil)

func newSession(e *managedServer, k sessionKey) *session {
	return &session{server: e, key: k, lost: make(chan struct{}), lastUsed: time.Now()}
}

// isPrivate says whether the session is one stateful caller's.
func (s *session) isPrivate() bool { return s.key.session != "" }

// hasCallerCapabilities says whether the server was told what the callers of this session can be asked. Of the home's
// callers it was told that they can be asked everything, and hears otherwise when it asks.
func (s *session) hasCallerCapabilities() bool { return s.isPrivate() || s.key.clientKind != "" }

// isStateful says whether the session is one of stateful callers, beside the home: their own, or that of their kind.
func (s *session) isStateful() bool { return s.isPrivate() || s.key.sharedByKind }

// hasSingleCaller says whether all calls were one caller's, so that what the server asks can be nobody else's.
func (s *session) hasSingleCaller() bool {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.isPrivate() || s.key.sharedByKind && !s.severalCallers
}

// belongsTo says whether the session is, so far, that of the caller with a session of that name.
func (s *session) belongsTo(session string) bool {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.key.session == session || s.key.sharedByKind && !s.severalCallers && s.firstCaller == session
}

// isPrimary says whether this is the session that is kept and listed.
func (s *session) isPrimary() bool { return s.key.era == 0 }

// markLost has the session's keeper close it. The first cause counts.
func (s *session) markLost(cause error) {
	s.loseOnce.Do(func() {
		s.cause = cause
		close(s.lost)
	})
}

// close ends the connection and the process under it. An early end of ctx makes it rough.
func (s *session) close(ctx context.Context) {
	if s.conn == nil {
		return
	}
	if err := s.conn.Close(ctx); err != nil {
		s.server.log.Debug("a connection did not end in good order", "error", err)
	}
}

// endCause says why the session is over, once it is. What the process ended with says more than the end of its output.
func (s *session) endCause() error {
	if isClosed(s.lost) {
		return s.cause
	}
	err := s.conn.Err()
	if s.proc == nil {
		return err
	}
	timer := time.NewTimer(processExitWait)
	defer timer.Stop()
	select {
	case <-s.proc.Done():
		return s.proc.ExitStatus()
	case <-timer.C:
		return err
	}
}

// processExitWait is how long the end of a process may come after the end of its output.
const processExitWait = time.Second

// HandleNotification takes what the server says outside any call.
func (s *session) HandleNotification(method string, params json.RawMessage) {
	switch method {
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged:
		s.triggerRelist()
		return
	case mcp.NoteProgress, mcp.NoteListenAck, mcp.NoteCancelled:
		return // late, or of no meaning to anybody
	case mcp.NoteTask:
		params = s.server.pool.o.Elicitation.PrepareInputRequests(s.server.config.ID, params)
	}
	if x := s.currentCall(); x != nil && !transport.IsServerWideNotification(method) {
		x.HandleNotification(method, params)
		return
	}
	// What another principal's connection says is for that principal, whom nobody here can reach outside a call, and
	// so is what comes on a connection of stateless callers.
	reachable := s.isStateful() || s.key.principal == s.server.pool.o.Principal && s.key.clientKind == ""
	if reachable {
		n := drawbridge.ServerNotification{Server: s.server.config.ID, Session: s.key.session,
			Method: method, Params: params}
		if s.isPrivate() || !transport.IsServerWideNotification(method) || s.server.config.URL == "" &&
			s.server.config.Share != "all" {
			n.Principal = s.key.principal // else the same is so for everybody who is served by this connection
		}
		s.server.notifyFleets(n)
	}
}

// triggerRelist has the server listed again: something has changed, or may have.
func (s *session) triggerRelist() {
	if s.isPrimary() || s.needsMirrorWatch() {
		wakeOne(s.server.relistSignal)
		s.server.mountToRelist()
	}
}

// currentCall gives the call that what the server says must belong to, as far as we can tell and the connection, which
// counts our own requests too, cannot: the only one in flight, or, where all are of one caller, the newest.
func (s *session) currentCall() *inFlightCall {
	calls := s.callsInFlight()
	if n := len(calls); n == 1 || n > 1 && s.hasSingleCaller() {
		return calls[n-1]
	}
	return nil
}

// callsInFlight gives the calls in flight, the newest last.
func (s *session) callsInFlight() []*inFlightCall {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return slices.Clone(s.calls)
}

// HandleRequest answers a request that belongs to no call, as far as the connection can tell. Before there was a call
// it goes to the one that the session is opened for, and where all calls are one caller's also later.
func (s *session) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	calls := s.callsInFlight()
	switch {
	case len(calls) == 1:
		return calls[0].HandleRequest(ctx, method, params)
	case len(calls) > 1 && s.hasSingleCaller():
		return s.answerForAnyCall(ctx, calls, method, params)
	case s.openingCall != nil && (s.hasSingleCaller() || !s.hadCall()):
		return s.AnswerServerRequest(ctx, *s.openingCall, method, params)
	case s.openingCall != nil && s.key.clientKind != "" && method == mcp.MethodRootsList &&
		mcp.ClientAcceptsRequest(s.openingCall.Caller.Capabilities, method, params):
		// No answer is better than ours: a server that asks some time after the greeting keeps what it hears for good.
		return nil, mcp.NewErrorObject(mcp.CodeInternal, "roots/list: the client can be asked in the course of a call",
			nil)
	}
	return s.AnswerServerRequest(ctx, drawbridge.Call{}, method, params)
}

// answerForAnyCall asks the caller whose calls these all are. Which of them the question belongs to nobody can tell:
// so the time of all stands still meanwhile, and the question is there for as long as one of them is.
func (s *session) answerForAnyCall(ctx context.Context, calls []*inFlightCall, method string, params json.RawMessage) (
	result, errorObject json.RawMessage) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left atomic.Int32
	left.Store(int32(len(calls)))
	for _, x := range calls {
		defer x.pauseTimeout()()
		defer context.AfterFunc(x.Context(), func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	return s.AnswerServerRequest(ctx, calls[len(calls)-1].Call(), method, params)
}

// Wake has a server on pipes read one more line: a request that costs it nothing. Programs made with Go 1.26 can stand
// still for a minute until they do, see package stdin.
func (s *session) Wake() { transport.WakeServer(s.conn, s.ownRequestParams(nil)) }

// isOver says whether the session can be used no more.
func (s *session) isOver() bool { return isClosed(s.lost) || isClosed(s.conn.Done()) }

// acquire notes a call in flight. It says false for a session that is over. It needs e.mu.
func (s *session) acquire() bool {
	if s.isOver() {
		return false
	}
	s.borrowed++
	return true
}

// release notes the end of a call. It needs e.mu.
func (s *session) release() {
	s.borrowed--
	s.lastUsed = time.Now()
}

// trackCall and finish keep the calls in flight.
func (s *session) trackCall(x *inFlightCall) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.calls = append(s.calls, x)
	if caller := x.Call().Caller.Session; !s.called {
		s.firstCaller = caller
	} else if caller != s.firstCaller {
		s.severalCallers = true
	}
	s.called = true
}

func (s *session) untrackCall(x *inFlightCall) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if i := slices.Index(s.calls, x); i >= 0 {
		s.calls = slices.Delete(s.calls, i, i+1)
	}
}

// hadCall says whether there was a call on the session.
func (s *session) hadCall() bool {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.called
}

// wakeOne wakes whoever waits on c, now or next.
func wakeOne(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
