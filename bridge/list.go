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
// An error is for a server whose tools are not known; what else goes wrong is told in the status.
func (e *endpoint) relist(s *session, began time.Time) error {
	ctx, cancel := context.WithTimeout(e.ctx, e.pool.o.ConnectTimeout)
	defer cancel()
	l, troubles, err := e.list(ctx, s, began)
	if err == nil {
		err = e.ctx.Err() // a list that our own end cut off says nothing about the server
	}
	if err != nil {
		return e.mountFault("list", err)
	}
	tools := survey.ToolsOf(l.Tools, e.row.URL != "")
	e.mu.Lock()
	worth := e.budget.Spend(e.listing, &l, time.Now())
	e.listing, e.fresh, e.tools = &l, true, tools
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
	e.enter(drawbridge.Ready, e.budget.Trouble(troubles, time.Now()))
	return nil
}

// list asks the server of a session for everything. For a list that did not come the last known one stands; and so do all of a server
// that comes back before it may be asked again, which is when its time has come.
func (e *endpoint) list(ctx context.Context, s *session, began time.Time) (drawbridge.Listing, []string, error) {
	e.mu.Lock()
	last := e.listing
	if !began.IsZero() && last != nil && e.budget.Wait(time.Now()) > 0 {
		defer e.mu.Unlock()
		signal(e.changed)
		return *last, nil, nil
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
	troubles, err := survey.Take(ctx, &l, survey.Options{
		Ask: s.page, Last: last, Headers: s.era == drawbridge.Modern && e.row.URL != "",
	})
	return l, troubles, err
}

// page asks for one page of a list.
func (s *session) page(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	result, err := s.request(ctx, method, s.ours(params))
	_, said := errors.AsType[*link.ReplyError](err)
	if err != nil && !said && ctx.Err() != nil && s.e.ctx.Err() == nil {
		err = &connectTimeout{s.e.pool.o.ConnectTimeout}
	}
	return result, err
}
