package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// listAndPublish reads all lists of the server and publishes the listing. began is when the mount began; it is zero for
// a refresh. listAndPublish returns an error if the tools could not be read and are not known from an earlier listing.
// With strict, it returns an error whenever the tools could not be read, and then publishes nothing. Other problems are
// reported in the status.
func (e *managedServer) listAndPublish(s *session, began time.Time, strict bool) error {
	ctx, cancel := context.WithTimeout(e.ctx, e.pool.o.ConnectTimeout)
	defer cancel()
	l, out, err := e.readListing(ctx, s, began)
	if err == nil {
		err = e.ctx.Err() // a list that was interrupted by the shutdown is not a fault of the server
	}
	if strict && err == nil {
		err = out.Missed[mcp.MethodToolsList]
	}
	if err != nil {
		return e.mountFault("list", err)
	}
	tools := parseToolTraits(l.Tools, e.config.URL != "")
	before, _ := e.listing.get()
	worth := e.listing.budget.recordChange(before, &l, time.Now())
	s.setListError(out.Missed[mcp.MethodToolsList])
	e.listing.set(&l, tools, out.LeftOut)
	if !began.IsZero() {
		e.health.noteStart(max(1, time.Since(began).Milliseconds()))
	}
	if m := e.pool.o.MountStore; m != nil && worth {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), statusSaveTimeout)
		defer cancel()
		if err := m.SaveListing(ctx, l); err != nil {
			e.log.Warn("a listing was not saved", "error", err)
		}
	}
	e.notifyListed(l)
	e.setPhase(drawbridge.Ready, e.listing.budget.describeProblems(out.Problems, time.Now()))
	return nil
}

// readListing reads all lists of the server on the session s. A list that cannot be read keeps its last known content.
// began is not zero if the server was just mounted. If the server's relistBudget then does not permit a listing yet,
// readListing returns the last listing. It also requests another listing, which is made when the budget permits it.
func (e *managedServer) readListing(ctx context.Context, s *session, began time.Time) (drawbridge.Listing,
	listingOutcome, error) {
	last, _ := e.listing.get()
	if !began.IsZero() && last != nil && e.listing.budget.waitTime(time.Now()) > 0 {
		wakeOne(e.signals.relist)
		return *last, listingOutcome{}, nil
	}
	l := drawbridge.Listing{
		Server: e.config.ID, ConfigHash: e.config.Hash, Era: e.sessions.knownEra(),
		Info: s.info, Capabilities: s.capabilities, Instructions: s.instructions,
		CacheHints: map[string]drawbridge.CacheHint{},
	}
	if s.hint != nil {
		l.CacheHints[mcp.MethodDiscover] = *s.hint
	}
	out, err := readAllLists(ctx, &l, listReader{
		Request: s.requestPage, Last: last, Headers: s.era == drawbridge.Modern && e.config.URL != "",
	})
	return l, out, err
}

// Relist lists a connected server again, and returns when the new listing was published. It is necessary because a
// server need not send notifications of changes. If the server is being connected, Relist first waits for that. If the
// server is not connected, Relist does nothing and returns false; the server is listed at its next start. Relist
// returns an error for an unknown name. If the tools could not be listed, it returns an error and publishes nothing.
func (f *Fleet) Relist(ctx context.Context, id drawbridge.ServerID) (connected bool, err error) {
	if f.isHeld(id) {
		return false, nil
	}
	e, err := f.serverByID(id)
	if err != nil {
		return false, err
	}
	e.sessions.mu.Lock()
	o := e.sessions.openings[e.primaryKey()]
	spared := o == nil && e.sessions.live[e.primaryKey()] == nil && len(e.sessions.live) > 0
	if spared { // the primary session was stopped, but other sessions are open
		o = e.requestSession(e.primaryKey(), nil)
	}
	if o != nil {
		o.markUrgentLocked()
	}
	e.sessions.mu.Unlock()
	if err = e.waitListed(ctx, o, forever); spared || ctx.Err() != nil {
		return true, err
	}
	s := e.sessions.primarySession()
	if s == nil {
		return false, nil
	}
	answer := make(chan error, 1)
	select {
	case e.signals.relistRequests <- answer:
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

// requestPage requests one page of a list.
func (s *session) requestPage(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	result, err := s.sendRequest(ctx, method, s.ownRequestParams(params))
	_, said := errors.AsType[*transport.ResponseError](err)
	if err != nil && !said && ctx.Err() != nil && s.server.ctx.Err() == nil {
		err = &transport.TimeoutError{After: s.server.pool.o.ConnectTimeout, Setting: connectTimeoutSetting}
	}
	return result, err
}
