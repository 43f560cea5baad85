package upstream

import (
	"cmp"
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// stderrLines is how many lines of a server's standard error are shown.
const stderrLines = 20

// Status returns the status of each server, in the fleet's order.
func (f *Fleet) Status() []drawbridge.ServerStatus {
	all := f.servers()
	out := make([]drawbridge.ServerStatus, 0, len(all))
	for _, e := range all {
		e.mu.Lock()
		out = append(out, e.statusLocked())
		e.mu.Unlock()
	}
	return out
}

// statusLocked returns the server's status. It needs mu.
func (e *managedServer) statusLocked() drawbridge.ServerStatus {
	s := drawbridge.ServerStatus{
		Server: e.config.ID, Phase: e.phase, Transport: e.config.Transport(), Era: e.era.String(),
		StartMillis: e.startMillis, Asks: e.asksClients, Fault: e.lastFault, SignIn: e.signInURL, Stderr: e.stderr,
		Junk: e.junkLines,
	}
	if s.Phase == drawbridge.Idle && len(e.sessions) > 0 {
		s.Phase = drawbridge.Ready // its primary session was stopped, others are open
	}
	if e.config.Origin.Path != "" {
		s.Source = e.config.Origin.String()
	}
	if l := e.listing; l != nil {
		s.Cards, s.Prompts = len(l.Tools), len(l.Prompts)
		s.Resources, s.Templates = len(l.Resources), len(l.Templates)
		s.Listed = l.ListedAt
	}
	s.Notes = append(s.Notes, e.missingValues...)
	s.Notes = append(s.Notes, e.leftOut...)
	if e.declineReason != "" {
		s.Notes = append(s.Notes, "asked for elicitation, which "+e.declineReason)
	}
	for _, session := range e.sessions {
		s.Junk += int(session.junk.Load())
		switch {
		case session.proc == nil:
		case session.isPrimary():
			s.PIDs = append([]int{session.proc.PID()}, s.PIDs...)
			s.Stderr, e.confinement = session.proc.Stderr(), session.proc.Confinement()
		default:
			s.PIDs = append(s.PIDs, session.proc.PID())
		}
	}
	s.Confined = e.confinement
	s.Stderr = s.Stderr[max(0, len(s.Stderr)-stderrLines):]
	return s
}

// noteDecline stores, for people, why the server's elicitation was declined and what would allow it.
func (e *managedServer) noteDecline(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.declineReason = cmp.Or(why, e.declineReason)
}

// statusSaveTimeout bounds the saving of a status, also at shutdown.
const statusSaveTimeout = 5 * time.Second

// setPhase changes the server's state and saves the status. The last fault stays visible. Only the primary loop calls
// it, so that saves are in order.
func (e *managedServer) setPhase(phase drawbridge.ServerPhase, fault error) {
	needed := oauth.SignInRequired(fault)
	if phase == drawbridge.Faulted && needed.HasURL() {
		phase = drawbridge.NeedsSignIn
	}
	e.mu.Lock()
	e.phase = phase
	switch {
	case needed.HasURL():
		e.signInURL = needed.URL
	case fault != nil, phase == drawbridge.Ready:
		e.signInURL = ""
	}
	news := false
	switch {
	case fault != nil:
		e.lastFault = transport.TruncatedError(fault)
		news = e.loggedFault != e.lastFault
		e.loggedFault = e.lastFault
	case phase == drawbridge.Ready:
		e.loggedFault = ""
	}
	status := e.statusLocked()
	status.PIDs = nil
	e.mu.Unlock()
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

// AwaitFirstAttempt waits until the first attempt to mount the server has ended, successfully or not. The error is for
// an unknown name, or ctx's.
func (f *Fleet) AwaitFirstAttempt(ctx context.Context, id drawbridge.ServerID) error {
	e, err := f.serverByID(id)
	if err != nil {
		return err
	}
	select {
	case <-e.firstAttemptDone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Mount mounts the server now, unless it is mounted, and waits until it is listed.
func (f *Fleet) Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	e, err := f.serverByID(id)
	if err != nil {
		return drawbridge.Listing{}, err
	}
	e.mu.Lock()
	o := e.openings[e.primaryKey()]
	if home := e.sessions[e.primaryKey()]; o == nil && (home == nil || home.isOver()) {
		o = e.requestSession(e.primaryKey(), nil)
	}
	e.mu.Unlock()
	if err := e.waitListed(ctx, o, forever); err != nil {
		return drawbridge.Listing{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.listing, nil
}

// waitListed waits until an opening of the primary session, if any, has ended. It returns why it did not end in a
// listing.
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
