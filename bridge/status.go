package bridge

import (
	"cmp"
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
)

// stderrLines is how much of what a server wrote to standard error is shown.
const stderrLines = 20

// Status says how each server is, in the fleet's order.
func (f *Fleet) Status() []drawbridge.Status {
	all := f.mine()
	out := make([]drawbridge.Status, 0, len(all))
	for _, e := range all {
		e.mu.Lock()
		out = append(out, e.status())
		e.mu.Unlock()
	}
	return out
}

// status needs mu.
func (e *endpoint) status() drawbridge.Status {
	s := drawbridge.Status{
		Server: e.row.ID, Phase: e.phase, Transport: e.row.Transport(), Era: e.era.String(),
		StartMillis: e.startMillis, Asks: e.asks, Fault: e.fault, SignIn: e.signIn, Stderr: e.stderr, Junk: e.junk,
	}
	if s.Phase == drawbridge.Idle && len(e.sessions) > 0 {
		s.Phase = drawbridge.Ready // its home was spared, others are there
	}
	if e.row.Origin.Path != "" {
		s.Source = e.row.Origin.String()
	}
	if l := e.listing; l != nil {
		s.Cards, s.Prompts = len(l.Tools), len(l.Prompts)
		s.Resources, s.Templates = len(l.Resources), len(l.Templates)
		s.Listed = l.At
	}
	s.Notes = append(s.Notes, e.missing...)
	if e.declined != "" {
		s.Notes = append(s.Notes, "asked for elicitation, which "+e.declined)
	}
	for _, session := range e.sessions {
		s.Junk += int(session.junk.Load())
		switch {
		case session.proc == nil:
		case session.home():
			s.PIDs = append([]int{session.proc.PID()}, s.PIDs...)
			s.Stderr, e.confined = session.proc.Stderr(), session.proc.Confined()
		default:
			s.PIDs = append(s.PIDs, session.proc.PID())
		}
	}
	s.Confined = e.confined
	s.Stderr = s.Stderr[max(0, len(s.Stderr)-stderrLines):]
	return s
}

// decline notes for people that the server asked for what is kept from them, and what would allow it.
func (e *endpoint) decline(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.declined = cmp.Or(why, e.declined)
}

// saveTimeout bounds the saving of a status, which goes on at the end of everything too.
const saveTimeout = 5 * time.Second

// enter puts the endpoint into a phase and has that remembered. fault is what went wrong, if anything did; the last one
// stays to be seen. Only the home's keeper calls it, so that what is remembered is in order.
func (e *endpoint) enter(phase drawbridge.Phase, fault error) {
	needed := signin.Needed(fault)
	if phase == drawbridge.Faulted && needed.Visitable() {
		phase = drawbridge.NeedsSignIn
	}
	e.mu.Lock()
	e.phase = phase
	switch {
	case needed.Visitable():
		e.signIn = needed.URL
	case fault != nil, phase == drawbridge.Ready:
		e.signIn = ""
	}
	news := false
	switch {
	case fault != nil:
		e.fault = link.Told(fault)
		news = e.said != e.fault
		e.said = e.fault
	case phase == drawbridge.Ready:
		e.said = ""
	}
	status := e.status()
	status.PIDs = nil
	e.mu.Unlock()
	e.log.Debug("a server entered a phase", "phase", string(phase))
	if news {
		e.log.Warn("a server has a fault", "phase", string(phase), "error", status.Fault)
	}
	m := e.pool.o.Memory
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), saveTimeout)
	defer cancel()
	if err := m.SaveStatus(ctx, e.row.Hash, status); err != nil {
		e.log.Warn("a status was not saved", "error", err)
	}
}

// Attempted waits until the first attempt to mount the server has ended, well or not. The error is for an unknown name,
// or ctx's.
func (f *Fleet) Attempted(ctx context.Context, id drawbridge.ServerID) error {
	e, err := f.endpoint(id)
	if err != nil {
		return err
	}
	select {
	case <-e.tried:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Mount mounts the server now, unless it is mounted, and waits until it is listed.
func (f *Fleet) Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	e, err := f.endpoint(id)
	if err != nil {
		return drawbridge.Listing{}, err
	}
	e.mu.Lock()
	o := e.openings[e.homeKey()]
	if home := e.sessions[e.homeKey()]; o == nil && (home == nil || home.over()) {
		o = e.want(e.homeKey(), nil)
	}
	e.mu.Unlock()
	if err := e.awaitListed(ctx, o, never); err != nil {
		return drawbridge.Listing{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.listing, nil
}

// awaitListed waits until an opening of the home has ended, where there is one, and says why it did not end in a listing.
func (e *endpoint) awaitListed(ctx context.Context, o *opening, limit time.Duration) error {
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
