package bridge

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/callers"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// levelTimeout bounds the request for a level.
const levelTimeout = 5 * time.Second

// SetLevel asks for log lines of a level and above, for the caller with that session; the empty session stands for
// everyone who has none of their own with a server. It is remembered until EndSession, and told to the servers of the
// legacy generation: a shared one is asked for the most that anybody wants. A server that does not want to know is
// passed over; the error is for a level that there is none of.
func (f *Fleet) SetLevel(ctx context.Context, session, level string) error {
	if !callers.IsLevel(level) {
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: "set the log level", Next: "use one of debug to emergency",
		}
	}
	f.pool.callers.SetLevel(session, level)
	var work sync.WaitGroup
	for _, e := range f.mine() {
		for _, s := range e.live() {
			if !s.frank() || s.key.session == session {
				work.Go(func() { s.setLevel(ctx, f.pool.callers.LevelFor(s.key.session)) })
			}
		}
	}
	work.Wait()
	return nil
}

// setLevel tells a legacy server the level, if it wants to know and does not know yet.
func (s *session) setLevel(ctx context.Context, level string) {
	if level == "" || s.era != drawbridge.Legacy || !wire.Declares(s.capabilities, "logging") {
		return
	}
	s.levels.Lock()
	defer s.levels.Unlock()
	if s.level == level {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	if _, err := s.request(ctx, wire.MethodSetLevel, wire.Apply(nil, wire.Put(wire.Quote(level), "level"))); err != nil {
		s.e.log.Info("a server did not take the log level", "error", err)
		return
	}
	s.level = level
}

// hear has a legacy server send the log lines that a stateless call asks for, if it sends fewer. The caller's own ear
// sorts out those that it did not ask for.
func (s *session) hear(ctx context.Context, call drawbridge.Call) {
	if s.era != drawbridge.Legacy || call.Caller.Era != drawbridge.Modern {
		return
	}
	level := callers.LevelIn(call.Params)
	if !callers.IsLevel(level) {
		return
	}
	s.levels.Lock()
	known := s.level
	s.levels.Unlock()
	if callers.Talkier(level, known) {
		s.setLevel(ctx, level)
	}
}

// live gives the sessions that can be used.
func (e *endpoint) live() []*session {
	e.mu.Lock()
	defer e.mu.Unlock()
	var live []*session
	for _, s := range e.sessions {
		if !s.over() {
			live = append(live, s)
		}
	}
	return live
}

// Tell passes a notification of the caller with that session on to the servers that it is for: those that have a session of
// their own for the caller. A server that cannot be told within a few seconds is passed over.
func (f *Fleet) Tell(ctx context.Context, session, method string, params json.RawMessage) {
	ctx, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	var work sync.WaitGroup
	for _, e := range f.mine() {
		for _, s := range e.live() {
			theirs := session != "" && s.of(session) && s.era == drawbridge.Legacy && s.opener != nil
			if !theirs || !wire.MayTell(s.opener.Caller.Capabilities, s.capabilities, method) {
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
	f.pool.callers.End(session)
	quieter := f.pool.callers.Most()
	for _, e := range f.mine() {
		for _, s := range e.live() {
			if quieter != "" && !s.frank() {
				e.hush(s, quieter)
			}
		}
		e.mu.Lock()
		for k, s := range e.sessions {
			if k.session == session {
				s.lose(errGone)
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

// hush has a server that callers share send no more log lines than somebody wants. It does not wait.
func (e *endpoint) hush(s *session, level string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start(func() { s.setLevel(e.ctx, level) })
}
