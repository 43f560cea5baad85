package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/survey"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// relist asks the server for everything it offers, and passes that on. began is when the mount began; zero for a refresh.
// An error is for a server whose tools are not known, or, if strict, are known from before only: then nothing is passed on. What
// else goes wrong is told in the status.
func (e *endpoint) relist(s *session, began time.Time, strict bool) error {
	ctx, cancel := context.WithTimeout(e.ctx, e.pool.o.ConnectTimeout)
	defer cancel()
	l, out, err := e.list(ctx, s, began)
	if err == nil {
		err = e.ctx.Err() // a list that our own end cut off says nothing about the server
	}
	if strict && err == nil {
		err = out.Missed[wire.MethodToolsList]
	}
	if err != nil {
		return e.mountFault("list", err)
	}
	tools := survey.ToolsOf(l.Tools, e.row.URL != "")
	e.mu.Lock()
	worth := e.budget.Spend(e.listing, &l, time.Now())
	e.listing, e.fresh, e.tools, s.unlisted = &l, true, tools, out.Missed[wire.MethodToolsList]
	if !began.IsZero() {
		e.startMillis = max(1, time.Since(began).Milliseconds())
	}
	e.mu.Unlock()
	if m := e.pool.o.Memory; m != nil && worth {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), saveTimeout)
		defer cancel()
		if err := m.SaveListing(ctx, l); err != nil {
			e.log.Warn("a listing was not saved", "error", err)
		}
	}
	e.listed(l)
	e.enter(drawbridge.Ready, e.budget.Trouble(out.Troubles, time.Now()))
	return nil
}

// list asks the server of a session for everything. For a list that did not come the last known one stands; and so do all of a server
// that comes back before it may be asked again, which is when its time has come.
func (e *endpoint) list(ctx context.Context, s *session, began time.Time) (drawbridge.Listing, survey.Outcome, error) {
	e.mu.Lock()
	last := e.listing
	if !began.IsZero() && last != nil && e.budget.Wait(time.Now()) > 0 {
		defer e.mu.Unlock()
		signal(e.changed)
		return *last, survey.Outcome{}, nil
	}
	l := drawbridge.Listing{
		Server: e.row.ID, Row: e.row.Hash, Era: e.era,
		Info: s.info, Capabilities: s.capabilities, Instructions: s.instructions,
		Hints: map[string]drawbridge.Hint{},
	}
	e.mu.Unlock()
	if s.hint != nil {
		l.Hints[wire.MethodDiscover] = *s.hint
	}
	out, err := survey.Take(ctx, &l, survey.Options{
		Ask: s.page, Last: last, Headers: s.era == drawbridge.Modern && e.row.URL != "",
	})
	return l, out, err
}

// Relist has a server that is connected list everything anew, and returns when that was told: a server need not say that its lists
// changed. One that is being connected is waited for, and one that is not connected is left alone: it is listed when it starts.
// The error is for an unknown name, and for a list of tools that did not come; then nothing was told.
func (f *Fleet) Relist(ctx context.Context, id drawbridge.ServerID) (connected bool, err error) {
	e, err := f.endpoint(id)
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	o := e.openings[e.homeKey()]
	spared := o == nil && e.sessions[e.homeKey()] == nil && len(e.sessions) > 0
	if spared { // the others are there
		o = e.want(e.homeKey(), nil)
	}
	e.mu.Unlock()
	if err = e.awaitListed(ctx, o, never); spared || ctx.Err() != nil {
		return true, err
	}
	e.mu.Lock()
	s := e.sessions[e.homeKey()]
	e.mu.Unlock()
	if s == nil {
		return false, nil
	}
	answer := make(chan error, 1)
	select {
	case e.anew <- answer:
	case <-s.lost:
		return false, nil
	case <-s.conn.Done():
		return false, nil
	case <-ctx.Done():
		return true, e.mountFault("list", ctx.Err())
	}
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = e.mountFault("list", ctx.Err())
	}
	return true, err
}

// page asks for one page of a list.
func (s *session) page(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	result, err := s.request(ctx, method, s.ours(params))
	_, said := errors.AsType[*link.ReplyError](err)
	if err != nil && !said && ctx.Err() != nil && s.e.ctx.Err() == nil {
		err = &link.TimeoutError{After: s.e.pool.o.ConnectTimeout}
	}
	return result, err
}
