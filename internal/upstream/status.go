package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// stderrLines is how many lines of a server's standard error are shown.
const stderrLines = 20

// Status returns the status of each server, in the fleet's order.
func (f *Fleet) Status() []drawbridge.ServerStatus {
	all := f.servers()
	out := make([]drawbridge.ServerStatus, 0, len(all))
	for _, e := range all {
		out = append(out, e.status())
	}
	return out
}

// status returns the server's status. The parts of the status are read one after another and may differ by a short
// time.
func (e *managedServer) status() drawbridge.ServerStatus {
	s := drawbridge.ServerStatus{Server: e.config.ID, Transport: e.config.Transport()}
	e.health.report(&s)
	if e.config.Origin.Path != "" {
		s.Source = e.config.Origin.String()
	}
	if l, _ := e.listing.get(); l != nil {
		s.Cards, s.Prompts = len(l.Tools), len(l.Prompts)
		s.Resources, s.Templates = len(l.Resources), len(l.Templates)
		s.Listed = l.ListedAt
	}
	s.Notes = append(s.Notes, e.listing.notes()...)
	e.reportSessions(&s)
	s.Stderr = s.Stderr[max(0, len(s.Stderr)-stderrLines):]
	return s
}

// reportSessions sets the members of a status that depend on the sessions.
func (e *managedServer) reportSessions(s *drawbridge.ServerStatus) {
	p := &e.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Era, s.Asks = p.era.String(), p.asksClients
	if s.Phase == drawbridge.Idle && len(p.live) > 0 {
		s.Phase = drawbridge.Ready // the primary session was stopped, but others are open
	}
	for _, session := range p.live {
		s.Junk += int(session.junk.Load())
		switch {
		case session.proc == nil:
		case session.isPrimary():
			s.PIDs = append([]int{session.proc.PID()}, s.PIDs...)
			s.Stderr, s.Confined = session.proc.Stderr(), session.proc.Confinement()
			e.health.noteConfinement(s.Confined)
		default:
			s.PIDs = append(s.PIDs, session.proc.PID())
		}
	}
}

// statusSaveTimeout is the time limit for saving a status or a listing, also at shutdown.
const statusSaveTimeout = 5 * time.Second

// setPhase changes the server's state and saves the status. Without a new fault, the last fault stays in the status.
// Only the primary loop and watchSlowStart call setPhase, never at the same time, so that statuses are saved in order.
func (e *managedServer) setPhase(phase drawbridge.ServerPhase, fault error) {
	phase, news := e.health.enter(phase, fault)
	status := e.status()
	status.PIDs = nil
	e.log.Debug("a server changed its state", "phase", string(phase))
	if news {
		e.log.Warn("a server has a fault", "phase", string(phase), "error", status.Fault)
	}
	m := e.pool.o.MountStore
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), statusSaveTimeout)
	defer cancel()
	if err := m.SaveStatus(ctx, e.config.Hash, status); err != nil {
		e.log.Warn("a status was not saved", "error", err)
	}
}

// AwaitFirstAttempt waits until the first attempt to mount the server has ended, successfully or not. It returns an
// error for an unknown name, and ctx.Err() if ctx ends first.
func (f *Fleet) AwaitFirstAttempt(ctx context.Context, id drawbridge.ServerID) error {
	e, err := f.serverByID(id)
	if err != nil {
		return err
	}
	select {
	case <-e.health.attempted: // also if ctx has ended
		return nil
	default:
	}
	select {
	case <-e.health.attempted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Mount mounts the server, unless it is mounted, and waits until the server is listed. It returns the listing.
func (f *Fleet) Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	e, err := f.awaitServer(ctx, id)
	if err != nil {
		return drawbridge.Listing{}, err
	}
	e.sessions.mu.Lock()
	o := e.sessions.openings[e.primaryKey()]
	if home := e.sessions.live[e.primaryKey()]; o == nil && (home == nil || home.isOver()) {
		o = e.requestSession(e.primaryKey(), nil)
	}
	if o != nil {
		o.markUrgentLocked()
	}
	e.sessions.mu.Unlock()
	if err := e.waitListed(ctx, o, forever); err != nil {
		return drawbridge.Listing{}, err
	}
	last, _ := e.listing.get()
	return *last, nil
}

var errReconnected = errors.New("the server is connected again, as a person asked")

// Reconnect closes all connections of a server and mounts it again. Calls in flight on these connections fail.
// Reconnect returns when the server is listed.
func (f *Fleet) Reconnect(ctx context.Context, id drawbridge.ServerID) error {
	if e, err := f.serverByID(id); err == nil {
		for _, s := range e.sessions.usable() {
			s.markLost(errReconnected)
		}
	}
	_, err := f.Mount(ctx, id)
	return err
}

// waitListed waits until an opening of the primary session has ended, and returns its error. It returns nil if o is
// nil. It returns an error if ctx ends first or limit has passed.
func (e *managedServer) waitListed(ctx context.Context, o *sessionOpening, limit time.Duration) error {
	if o == nil {
		return nil
	}
	if isClosed(o.listed) {
		return o.fault
	}
	select {
	case <-o.listed:
		return o.fault
	case <-time.After(limit):
		return e.mountFault("wait", context.DeadlineExceeded)
	case <-ctx.Done():
		return e.mountFault("wait", ctx.Err())
	}
}
