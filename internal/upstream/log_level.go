package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// notifyTimeout bounds the sending of a log level or a notification.
const notifyTimeout = 5 * time.Second

// SetLogLevel requests log lines of a level and above for the caller with that session ID. The empty session ID stands
// for all callers without a session. The level is stored until EndSession and sent to the stateful servers. A shared
// connection gets the most verbose level that any session requested. A server that refuses the level is skipped.
// SetLogLevel returns an error for an unknown level.
func (f *Fleet) SetLogLevel(ctx context.Context, session, level string) error {
	if !isLogLevel(level) {
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: "set the log level",
			Next: "use one of debug to emergency",
		}
	}
	f.pool.callerSessions.setLogLevel(session, level)
	var work sync.WaitGroup
	for _, e := range f.servers() {
		for _, s := range e.sessions.usable() {
			if !s.hasCallerCapabilities() || s.key.session == session {
				work.Go(func() { s.setLogLevel(ctx, f.pool.callerSessions.connectionLogLevel(s.key.session)) })
			}
		}
	}
	work.Wait()
	return nil
}

// setLogLevel sends the log level to a stateful server, if the server declares logging and has a different level.
func (s *session) setLogLevel(ctx context.Context, level string) {
	if level == "" || s.era != drawbridge.Legacy || !mcp.DeclaresAny(s.capabilities, "logging") {
		return
	}
	s.levelMu.Lock()
	defer s.levelMu.Unlock()
	if s.logLevel == level {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if _, err := s.sendRequest(ctx, mcp.MethodSetLevel, rawjson.Apply(nil, rawjson.Put(rawjson.Quote(level),
		"level"))); err != nil {
		s.server.log.Info("a server did not accept the log level", "error", err)
		return
	}
	s.logLevel = level
}

// raiseLogLevel makes a stateful server send the log lines that a stateless call requests. If the call requests a more
// verbose level than the session's current level, raiseLogLevel sends that level to the server. The server then also
// sends lines that other callers did not request; the handler of each caller drops these lines.
func (s *session) raiseLogLevel(ctx context.Context, call drawbridge.Call) {
	if s.era != drawbridge.Legacy || call.Caller.Era != drawbridge.Modern {
		return
	}
	level := requestedLogLevel(call.Params)
	if !isLogLevel(level) {
		return
	}
	s.levelMu.Lock()
	known := s.logLevel
	s.levelMu.Unlock()
	if isMoreVerbose(level, known) {
		s.setLogLevel(ctx, level)
	}
}

// ForwardNotification sends a notification of a caller to each stateful server that has a session for that caller and
// may receive the notification. session is the ID of the caller's session. A server that does not accept the
// notification within notifyTimeout is skipped.
func (f *Fleet) ForwardNotification(ctx context.Context, session, method string, params json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	var work sync.WaitGroup
	for _, e := range f.servers() {
		for _, s := range e.sessions.usable() {
			theirs := session != "" && s.belongsTo(session) && s.era == drawbridge.Legacy && s.openingCall != nil
			if !theirs || !mcp.ClientMayNotify(s.openingCall.Caller.Capabilities, s.capabilities, method) {
				continue
			}
			work.Go(func() {
				if err := s.conn.Notify(ctx, method, params); err != nil {
					e.log.Info("a notification of a client was not sent to the server", "error", err)
				}
			})
		}
	}
	work.Wait()
}

// EndSession closes the connections that were opened for the caller with that session ID, and deletes its log level.
// Shared connections then get the most verbose of the remaining levels. EndSession does not wait until the connections
// are closed.
func (f *Fleet) EndSession(session string) {
	if session == "" {
		return
	}
	f.pool.callerSessions.endSession(session)
	quieter := f.pool.callerSessions.mostVerboseLevel()
	for _, e := range f.servers() {
		for _, s := range e.sessions.usable() {
			if quieter != "" && !s.hasCallerCapabilities() {
				e.workers.start(func() { s.setLogLevel(e.ctx, quieter) })
			}
		}
		e.sessions.endCallerSession(session)
	}
}
