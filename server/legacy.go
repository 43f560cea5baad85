package server

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A toldDeck is a deck that wants to know what its callers say on their own: that their roots have changed.
type toldDeck interface {
	Tell(ctx context.Context, caller drawbridge.Caller, method string, params json.RawMessage)
}

var _ toldDeck = (*deck.Deck)(nil)

// legacy answers a request of a stateful client, but for initialize, which makes the session. Who is the session's caller as
// this request proved them.
func (s *Server) legacy(ctx context.Context, c *session, who drawbridge.Caller, m wire.Message, voice voice) reply {
	switch m.Method {
	case wire.MethodPing:
		return empty()
	case wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodTemplatesList, wire.MethodSkillsList:
		return s.list(ctx, who, m.Method, m.Params)
	case wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodResourcesRead, wire.MethodComplete:
		return s.call(ctx, who, m, &peer{voice: voice, session: c})
	case wire.MethodSetLevel:
		return s.setLevel(ctx, c, who, m)
	case wire.MethodSubscribe:
		return s.subscribe(ctx, c, who, m)
	case wire.MethodUnsubscribe:
		return s.unsubscribe(ctx, c, who, m)
	case wire.MethodInitialize:
		return failure(wire.CodeInvalidRequest, "Already initialized", nil)
	case wire.MethodDiscover, wire.MethodListen:
		return noMethod(m.Method) // not before the stateless generation
	}
	return s.call(ctx, who, m, &peer{voice: voice, session: c}) // of an extension, or of nobody
}

// inFlight runs a request of a session so that the session may cancel it. The context is the request's own.
func (c *session) inFlight(ctx context.Context, m wire.Message, run func(context.Context) reply) reply {
	ctx, cancel, refusal := c.takeOff(ctx, m.ID)
	if !refusal.isNone() {
		return refusal
	}
	defer c.land(m.ID, cancel)
	return c.fly(ctx, run)
}

// takeOff has the session be able to cancel a request until it lands. The reply is the refusal of one too many.
func (c *session) takeOff(ctx context.Context, id json.RawMessage) (context.Context, context.CancelCauseFunc, reply) {
	if c.flights.len() >= maxInFlight {
		return nil, nil, failure(wire.CodeInternal, "Too many requests are in progress", nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if !c.flights.add(id, cancel) {
		cancel(nil)
		return nil, nil, failure(wire.CodeInvalidRequest, "A request of this id is in progress", nil)
	}
	return ctx, cancel, reply{}
}

func (c *session) land(id json.RawMessage, cancel context.CancelCauseFunc) {
	c.flights.remove(id)
	cancel(nil)
}

// fly runs a request that took off, unless the session is over.
func (c *session) fly(ctx context.Context, run func(context.Context) reply) reply {
	select {
	case <-c.ended:
		return orEnded(ctx, reply{})
	default:
		return orEnded(ctx, run(ctx))
	}
}

// noted takes a notification of a stateful client.
func (s *Server) noted(ctx context.Context, c *session, who drawbridge.Caller, m wire.Message) {
	switch m.Method {
	case wire.NoteCancelled:
		c.flights.cancel(m.Params)
	case wire.NoteInitialized:
	default:
		if d, ok := s.deck.(toldDeck); ok {
			d.Tell(ctx, who, m.Method, m.Params)
		}
	}
}

func (s *Server) setLevel(ctx context.Context, c *session, who drawbridge.Caller, m wire.Message) reply {
	level := wire.GetText(m.Params, "level")
	if err := s.deck.SetLevel(ctx, who, level); err != nil {
		return s.failed(ctx, who, m.Method, m.Params, err)
	}
	c.watcher.setLevel(level)
	return empty()
}

func (s *Server) subscribe(ctx context.Context, c *session, who drawbridge.Caller, m wire.Message) reply {
	uri := wire.GetText(m.Params, "uri")
	// The watcher goes first: an update may come before Subscribe returns.
	if !c.watcher.watch(uri) {
		return failure(wire.CodeInvalidParams, "Too many subscriptions", nil)
	}
	if err := s.deck.Subscribe(ctx, who, uri); err != nil {
		c.watcher.forget(uri)
		return s.failed(ctx, who, m.Method, m.Params, err)
	}
	return empty()
}

func (s *Server) unsubscribe(ctx context.Context, c *session, who drawbridge.Caller, m wire.Message) reply {
	uri := wire.GetText(m.Params, "uri")
	c.watcher.forget(uri)
	if err := s.deck.Unsubscribe(ctx, who, uri); err != nil {
		return s.failed(ctx, who, m.Method, m.Params, err)
	}
	return empty()
}

// empty is the answer to a request that has nothing to answer.
func empty() reply { return result([]byte(`{}`)) }
