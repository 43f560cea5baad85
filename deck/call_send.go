package deck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// rewriteParams sets s.sent to a copy of the call. In its params, the public names, URIs, request state and task IDs
// are replaced with the server's own.
func (d *Deck) rewriteParams(_ context.Context, s *callState) error {
	s.sent = s.call
	edits := slices.Concat(s.argumentEdits, s.target.edits)
	m := d.view.Load().server(s.target.spec.Server)
	// If m is nil, the server was removed after the target was found. Then the upstream returns the fault.
	if s.target.card == nil && !s.target.searches && m != nil {
		k := d.taskTranslatorFor(m, s.call.Caller)
		s.tasks = &k
		edits = append(edits, k.requestEdits(s.call.Params)...)
		s.sent.Caller.Capabilities = capabilitiesWithoutTasks(s.call.Caller)
		s.taskRequested = s.call.Method == mcp.MethodToolsCall && bytes.Contains(s.call.Params, []byte("task")) &&
			rawjson.Get(s.call.Params, "task") != nil
		if s.taskRequested && !k.maySendTaskParam(s.call.Caller) {
			edits = append(edits, rawjson.Drop("task"))
			s.taskRequested = false
		}
		if k.offered != nil {
			s.sent.Peer = k.wrapPeer(s.call.Peer)
		}
	}
	if d.startsOwnTask(s) {
		k := d.ownTaskTranslator(s.call.Caller)
		s.tasks, s.taskRequested = &k, rawjson.Get(s.call.Params, "task") != nil
	}
	s.sent.Params = rawjson.Apply(s.call.Params, edits...)
	return nil
}

// send sends the call to its card or server, and sets s.result. Before that it sets the result filter, because the
// server's settings are lost if the server is removed during the call.
func (d *Deck) send(ctx context.Context, s *callState) (err error) {
	server := s.target.spec.Server
	s.filter = d.filterOf(s)
	if l, ok := s.call.Peer.(ForeignListener); ok && s.filter.MarksForOrigin() {
		l.NoteForeign() // before the call, because errors and incomplete results have texts of the server too
	}
	switch {
	case s.target.searches:
		s.result = d.SearchView(s.call.Caller).AnswerSearch(ctx, s.params.Name, s.params.Arguments,
			func(name drawbridge.CardName) (LearnedOutput, bool) { return d.LearnedOutput(ctx, s.call.Caller, name) })
	case s.target.ownTask:
		s.result, err = d.ownTasks.DoTask(ctx, s.sent)
		if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Code == drawbridge.NotFound {
			err = unknownNameFault(taskKind, string(s.target.spec.Name))
		}
	case s.target.card != nil:
		s.result, err = d.runCard(ctx, s.target, s.sent)
	default:
		s.result, err = d.upstream.Do(ctx, server, s.sent)
	}
	return s.filter.ApplyToError(ctx, err)
}

// runCard runs a shipped card. If the card panics, runCard logs the panic and returns a fault.
func (d *Deck) runCard(ctx context.Context, t callTarget, call drawbridge.Call) (result drawbridge.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("a card panicked", "card", t.spec.Name, "panic", panicMessage(p), "at", panicLocation())
			result, err = drawbridge.Result{}, drawbridge.AsFault(fmt.Errorf("card %s: panic", t.spec.Name))
		}
	}()
	if t.spec.Crossing != nil {
		return d.crossBoundary(ctx, t, call)
	}
	return t.card.Run(ctx, call)
}
