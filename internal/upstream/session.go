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

// A sessionKey identifies a session. Callers with the same key share the session.
type sessionKey struct {
	// era is the protocol era of the session. It is zero for the primary session, whose era is detected.
	era       drawbridge.ProtocolEra
	principal string
	// session is the ID of the caller's session, for a private session; otherwise empty.
	session string
	// clientKind is the client kind for which the session was opened. slot numbers the sessions that run one call at a
	// time; it is zero for a session that calls share.
	clientKind string
	slot       int
	// singleUse is set for a session that is closed after its first call. sharedByKind is set for a session that
	// stateful callers of one client kind share.
	singleUse, sharedByKind bool
}

// A session is one live connection to a server, ready for calls after the handshake.
type session struct {
	server *managedServer
	key    sessionKey
	// openingCall is the call for which an extra session was opened; nil for the primary session and other shared
	// sessions.
	openingCall *drawbridge.Call

	conn transport.Conn
	proc *process.Process // nil for a server over HTTP
	junk atomic.Int64

	// The result of the handshake.
	era                drawbridge.ProtocolEra // the era of this connection
	version            string
	info, capabilities json.RawMessage
	instructions       string
	hint               *drawbridge.CacheHint

	// lost is closed when the session must not be used any more.
	lost     chan struct{}
	loseOnce sync.Once
	cause    error // set before lost is closed

	calls sessionCalls

	levelMu  sync.Mutex // held while the log level is sent
	logLevel string     // the log level that the server accepted last

	// sessions.mu of the server guards the fields below. opening is the opening of a primary session; it ends when the
	// listing was published. listErr is the error if the tools could not be listed and are known only from an earlier
	// listing.
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

// hasCallerCapabilities reports whether the session declared the capabilities of its callers. The primary session
// declares all capabilities, and server requests on it are refused.
func (s *session) hasCallerCapabilities() bool { return s.isPrivate() || s.key.clientKind != "" }

// isStateful reports whether this is an extra session for stateful callers: private, or shared by client kind.
func (s *session) isStateful() bool { return s.isPrivate() || s.key.sharedByKind }

// hasSingleCaller reports whether all calls on the session came from one caller, so that server requests belong to that
// caller.
func (s *session) hasSingleCaller() bool {
	return s.isPrivate() || s.key.sharedByKind && !s.calls.hadSeveralCallers()
}

// belongsTo reports whether all calls on the session so far came from the caller with that session ID.
func (s *session) belongsTo(session string) bool {
	return s.key.session == session || s.key.sharedByKind && s.calls.areAllOf(session)
}

// isPrimary reports whether this is the primary session.
func (s *session) isPrimary() bool { return s.key.era == 0 }

// markLost makes the session's goroutine close the session. Only the first cause is stored.
func (s *session) markLost(cause error) {
	s.loseOnce.Do(func() {
		s.cause = cause
		close(s.lost)
	})
}

// close closes the connection and ends its process. If ctx ends early, the process is killed.
func (s *session) close(ctx context.Context) {
	if s.conn == nil {
		return
	}
	if err := s.conn.Close(ctx); err != nil {
		s.server.log.Debug("a connection was not closed cleanly", "error", err)
	}
}

// endCause returns why the session ended. For a process it waits for the exit status, which is more informative than
// the end of the output.
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

// processExitWait is how long endCause waits for the exit of a process whose output has ended.
const processExitWait = time.Second

// RecordNotification stores a notification in the server's notification log, which people can read.
func (s *session) RecordNotification(method string, params json.RawMessage) {
	s.server.recordNotification(method, params)
}

// HandleNotification handles a notification that the connection did not attribute to a call.
func (s *session) HandleNotification(method string, params json.RawMessage) {
	s.RecordNotification(method, params)
	switch method {
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged:
		s.triggerRelist()
		return
	case mcp.NoteProgress, mcp.NoteListenAck, mcp.NoteCancelled:
		return // late, or meaningless outside a call
	case mcp.NoteTask:
		params = s.server.pool.o.Elicitation.PrepareInputRequests(s.server.config.ID, params)
	}
	if x := s.currentCall(); x != nil && !transport.IsServerWideNotification(method) {
		x.passNotification(method, params)
		return
	}
	// The notification is passed on only if the callers of the session can be reached outside a call. These are
	// stateful callers, and the callers of Options.Principal on a session without a client kind. Otherwise it is
	// dropped.
	reachable := s.isStateful() || s.key.principal == s.server.pool.o.Principal && s.key.clientKind == ""
	if reachable {
		n := drawbridge.ServerNotification{Server: s.server.config.ID, Session: s.key.session,
			Method: method, Params: params}
		if s.isPrivate() || !transport.IsServerWideNotification(method) || s.server.config.URL == "" &&
			s.server.config.Share != "all" {
			n.Principal = s.key.principal // if empty, the notification is for all callers of the connection
		}
		s.server.notifyFleets(n)
	}
}

// triggerRelist starts another listing of the server, since its lists changed or may have changed.
func (s *session) triggerRelist() {
	if s.isPrimary() || s.needsMirrorWatch() {
		wakeOne(s.server.signals.relist)
		s.server.mountToRelist()
	}
}

// currentCall returns the call that a server message must belong to, or nil if that is unknown. It returns the only
// call in flight, or the newest call if all calls in flight came from one caller. The connection cannot determine that
// call, since it also counts Drawbridge's own requests.
func (s *session) currentCall() *inFlightCall {
	calls := s.calls.current()
	if n := len(calls); n == 1 || n > 1 && s.hasSingleCaller() {
		return calls[n-1]
	}
	return nil
}

// HandleRequest answers a server request that the connection cannot attribute to a call. With one call in flight, the
// request belongs to that call. With several calls of one caller, the request is sent to that caller. Without a call in
// flight, the request goes to the caller for which the session was opened, if no other caller has used the session. In
// all other cases no caller is asked: only roots/list may be answered, and other requests are refused.
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
		// Return an error and not Drawbridge's roots: a server that asks some time after the handshake stores the
		// answer permanently.
		return nil, mcp.NewErrorObject(mcp.CodeInternal, "roots/list: ask the client during a call",
			nil)
	}
	return s.AnswerServerRequest(ctx, drawbridge.Call{}, method, params)
}

// answerForAnyCall sends a server request to the caller of all these calls. The request may belong to any of them.
// Therefore the silence limits of all calls are paused meanwhile, and the request is cancelled only when all calls have
// ended.
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

// Wake sends a cheap request to a server on pipes, so that the server reads one more line. Servers built with Go 1.26
// can stall for a minute until they read a line.
func (s *session) Wake() { transport.WakeServer(s.conn, s.ownRequestParams(nil)) }

// isOver reports whether the session cannot be used any more.
func (s *session) isOver() bool { return isClosed(s.lost) || isClosed(s.conn.Done()) }

// acquire increments the number of calls that use the session. It returns false for a session that is over. The
// server's sessions.mu must be held.
func (s *session) acquire() bool {
	if s.isOver() {
		return false
	}
	s.borrowed++
	return true
}

// setListError stores the error of the last attempt to list the tools; nil if they were listed.
func (s *session) setListError(err error) {
	s.server.sessions.mu.Lock()
	defer s.server.sessions.mu.Unlock()
	s.listErr = err
}

// listError returns the error that setListError stored.
func (s *session) listError() error {
	s.server.sessions.mu.Lock()
	defer s.server.sessions.mu.Unlock()
	return s.listErr
}

// wakeOne wakes the receiver of c, now or at its next receive. It does not block. c must have a buffer.
func wakeOne(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
