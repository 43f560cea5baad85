package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A sessionKey identifies a session: callers with the same key share it.
type sessionKey struct {
	// era is zero for the primary session, whose era is found out.
	era       drawbridge.ProtocolEra
	principal string
	// session is the caller's session, for a private session.
	session string
	// clientKind is the kind of client that the session was opened for. slot numbers sessions that have one call at a
	// time; it is zero for one that calls share.
	clientKind string
	slot       int
	// singleUse ends the session with its first call. sharedByKind marks a session that stateful callers of one kind
	// share.
	singleUse, sharedByKind bool
}

// A session is one live connection to a server, ready for calls after the handshake.
type session struct {
	server *managedServer
	key    sessionKey
	// openingCall is the call that an unshared session was opened for; nil for shared ones.
	openingCall *drawbridge.Call

	conn transport.Conn
	proc *process.Process // nil for a server over HTTP
	junk atomic.Int64

	// The result of the handshake.
	era                drawbridge.ProtocolEra // what is spoken here
	version            string
	info, capabilities json.RawMessage
	instructions       string
	hint               *drawbridge.CacheHint

	// lost is closed when the session must not be used any more.
	lost     chan struct{}
	loseOnce sync.Once
	cause    error // set before lost is closed

	calls sessionCalls

	levelMu  sync.Mutex // is held while the level is set
	logLevel string     // of log lines, as the server was told it

	// The fields below are guarded by sessions.mu of the server. opening is the primary session's, which ends when its
	// listing was published. listErr is why its tools are known only from before.
	opening  *sessionOpening
	listErr  error
	borrowed int // how many calls use the session
	lastUsed time.Time
}

var _ transport.Handler = (*session)(nil)
var _ callWaker = (*session)(nil)

func newSession(e *managedServer, k sessionKey) *session {
	return &session{server: e, key: k, lost: make(chan struct{}), lastUsed: time.Now()}
}

// isPrivate reports whether the session belongs to one stateful caller.
func (s *session) isPrivate() bool { return s.key.session != "" }

// hasCallerCapabilities reports whether the server learned its callers' capabilities. The primary session declares all
// capabilities, and its requests are refused.
func (s *session) hasCallerCapabilities() bool { return s.isPrivate() || s.key.clientKind != "" }

// isStateful reports whether the session is an extra one for stateful callers: private, or shared by kind.
func (s *session) isStateful() bool { return s.isPrivate() || s.key.sharedByKind }

// hasSingleCaller reports whether all calls were one caller's, so that server requests belong to that caller.
func (s *session) hasSingleCaller() bool {
	return s.isPrivate() || s.key.sharedByKind && !s.calls.hadSeveralCallers()
}

// belongsTo reports whether the session has, so far, only calls of the caller with that session.
func (s *session) belongsTo(session string) bool {
	return s.key.session == session || s.key.sharedByKind && s.calls.areAllOf(session)
}

// isPrimary reports whether this is the primary session.
func (s *session) isPrimary() bool { return s.key.era == 0 }

// markLost makes the session's goroutine close it. The first cause counts.
func (s *session) markLost(cause error) {
	s.loseOnce.Do(func() {
		s.cause = cause
		close(s.lost)
	})
}

// close ends the connection and its process. An early end of ctx kills the process.
func (s *session) close(ctx context.Context) {
	if s.conn == nil {
		return
	}
	if err := s.conn.Close(ctx); err != nil {
		s.server.log.Debug("a connection was not closed cleanly", "error", err)
	}
}

// endCause returns why the session is over. A process's exit status says more than the end of its output.
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

// processExitWait is how long after its output a process may end.
const processExitWait = time.Second

// RecordNotification records a notification for people.
func (s *session) RecordNotification(method string, params json.RawMessage) {
	s.server.recordNotification(method, params)
}

// HandleNotification handles a notification outside any call.
func (s *session) HandleNotification(method string, params json.RawMessage) {
	s.RecordNotification(method, params)
	switch method {
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged:
		s.triggerRelist()
		return
	case mcp.NoteProgress, mcp.NoteListenAck, mcp.NoteCancelled:
		return // late, or without meaning here
	case mcp.NoteTask:
		params = s.server.pool.o.Elicitation.PrepareInputRequests(s.server.config.ID, params)
	}
	if x := s.currentCall(); x != nil && !transport.IsServerWideNotification(method) {
		x.passNotification(method, params)
		return
	}
	// Notifications on another principal's connection are for that principal, who cannot be reached here outside a
	// call; the same holds for connections of stateless callers.
	reachable := s.isStateful() || s.key.principal == s.server.pool.o.Principal && s.key.clientKind == ""
	if reachable {
		n := drawbridge.ServerNotification{Server: s.server.config.ID, Session: s.key.session,
			Method: method, Params: params}
		if s.isPrivate() || !transport.IsServerWideNotification(method) || s.server.config.URL == "" &&
			s.server.config.Share != "all" {
			n.Principal = s.key.principal // otherwise it concerns all callers of this connection
		}
		s.server.notifyFleets(n)
	}
}

// triggerRelist lists the server again, since its lists changed or may have.
func (s *session) triggerRelist() {
	if s.isPrimary() || s.needsMirrorWatch() {
		wakeOne(s.server.signals.relist)
		s.server.mountToRelist()
	}
}

// currentCall returns the call that a message must belong to: the only one in flight or, if all are one caller's, the
// newest. The connection cannot tell, since it counts our own requests too.
func (s *session) currentCall() *inFlightCall {
	calls := s.calls.current()
	if n := len(calls); n == 1 || n > 1 && s.hasSingleCaller() {
		return calls[n-1]
	}
	return nil
}

// HandleRequest answers a request that the connection cannot attribute to a call. Before the first call, and later if
// all calls are one caller's, it goes to the call that the session was opened for.
func (s *session) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	calls := s.calls.current()
	switch {
	case len(calls) == 1:
		return calls[0].HandleRequest(ctx, method, params)
	case len(calls) > 1 && s.hasSingleCaller():
		return s.answerForAnyCall(ctx, calls, method, params)
	case s.openingCall != nil && (s.hasSingleCaller() || !s.calls.hadCall()):
		return s.AnswerServerRequest(ctx, *s.openingCall, method, params)
	case s.openingCall != nil && s.key.clientKind != "" && method == mcp.MethodRootsList &&
		mcp.ClientAcceptsRequest(s.openingCall.Caller.Capabilities, method, params):
		// An error is better than our answer: a server that asks some time after the handshake keeps the answer for
		// good.
		return nil, mcp.NewErrorObject(mcp.CodeInternal, "roots/list: ask the client during a call",
			nil)
	}
	return s.AnswerServerRequest(ctx, drawbridge.Call{}, method, params)
}

// answerForAnyCall asks the caller of all these calls. Since the request may belong to any of them, the clocks of all
// stop meanwhile, and the request lasts as long as one of them.
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

// Wake makes a server on pipes read one more line: a cheap request. Programs built with Go 1.26 can stall for a minute
// until they do, see package process.
func (s *session) Wake() { transport.WakeServer(s.conn, s.ownRequestParams(nil)) }

// isOver reports whether the session cannot be used any more.
func (s *session) isOver() bool { return isClosed(s.lost) || isClosed(s.conn.Done()) }

// acquire counts a call. It returns false for a session that is over. It needs sessions.mu of the server.
func (s *session) acquire() bool {
	if s.isOver() {
		return false
	}
	s.borrowed++
	return true
}

// setListError stores why the tools of the connection are known only from before; nil if they were listed.
func (s *session) setListError(err error) {
	s.server.sessions.mu.Lock()
	defer s.server.sessions.mu.Unlock()
	s.listErr = err
}

// listError returns the error of setListError.
func (s *session) listError() error {
	s.server.sessions.mu.Lock()
	defer s.server.sessions.mu.Unlock()
	return s.listErr
}

// wakeOne wakes the receiver of c, now or at its next receive.
func wakeOne(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
