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

// notifyTimeout bounds the request for a level.
const notifyTimeout = 5 * time.Second

// SetLogLevel asks for log lines of a level and above, for the caller with that session; the empty session stands for
// everyone who has none of their own with a server. It is remembered until EndSession, and told to the servers of the
// legacy generation: a shared one is asked for the most that anybody wants. A server that does not want to know is
// passed over; the error is for a level that there is none of.
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
		for _, s := range e.liveSessions() {
			if !s.hasCallerCapabilities() || s.key.session == session {
				work.Go(func() { s.setLogLevel(ctx, f.pool.callerSessions.connectionLogLevel(s.key.session)) })
			}
		}
	}
	work.Wait()
	return nil
}

// setLogLevel tells a legacy server the level, if it wants to know and does not know yet.
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
		s.server.log.Info("a server did not take the log level", "error", err)
		return
	}
	s.logLevel = level
}

// raiseLogLevel has a legacy server send the log lines that a stateless call asks for, if it sends fewer. The caller's
// own ear sorts out those that it did not ask for.
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

// liveSessions gives the sessions that can be used.
func (e *managedServer) liveSessions() []*session {
	e.mu.Lock()
	defer e.mu.Unlock()
	var live []*session
	for _, s := range e.sessions {
		if !s.isOver() {
			live = append(live, s)
		}
	}
	return live
}

// ForwardNotification passes a notification of the caller with that session on to the servers that it is for: those
// that have a session of their own for the caller. A server that cannot be told within a few seconds is passed over.
func (f *Fleet) ForwardNotification(ctx context.Context, session, method string, params json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	var work sync.WaitGroup
	for _, e := range f.servers() {
		for _, s := range e.liveSessions() {
			theirs := session != "" && s.belongsTo(session) && s.era == drawbridge.Legacy && s.openingCall != nil
			if !theirs || !mcp.ClientMayNotify(s.openingCall.Caller.Capabilities, s.capabilities, method) {
				continue
			}
			work.Go(func() {
				if err := s.conn.Notify(ctx, method, params); err != nil {
					e.log.Info("a server was not told what its client said", "error", err)
				}
			})
		}
	}
	work.Wait()
}

// EndSession closes what was opened for the caller with that session, and forgets the level it asked for. It does not
// wait for the end.
func (f *Fleet) EndSession(session string) {
	if session == "" {
		return
	}
	f.pool.callerSessions.endSession(session)
	quieter := f.pool.callerSessions.mostVerboseLevel()
	for _, e := range f.servers() {
		for _, s := range e.liveSessions() {
			if quieter != "" && !s.hasCallerCapabilities() {
				e.lowerLogLevel(s, quieter)
			}
		}
		e.mu.Lock()
		for k, s := range e.sessions {
			if k.session == session {
				s.markLost(errCallerGone)
			}
		}
		for k, o := range e.openings {
			if k.session == session {
				o.cancel()
			}
		}
		e.mu.Unlock()
	}
}

// lowerLogLevel has a server that callers share send no more log lines than somebody wants. It does not wait.
func (e *managedServer) lowerLogLevel(s *session, level string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.startWorker(func() { s.setLogLevel(e.ctx, level) })
}
