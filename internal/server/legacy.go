package server

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A notifiableDeck is a deck that accepts notifications from its callers, such as changed roots.
type notifiableDeck interface {
	ForwardNotification(ctx context.Context, caller drawbridge.Caller, method string, params json.RawMessage)
}

var _ notifiableDeck = (*deck.Deck)(nil)

// handleLegacy responds to a request of a stateful client, except the initialize request that opens the session. who is
// the session's caller with the rights of this request. voice sends messages to the client before the response.
func (s *Server) handleLegacy(ctx context.Context, c *session, who drawbridge.Caller, m mcp.Message,
	voice sender) reply {
	switch m.Method {
	case mcp.MethodPing:
		return emptyResult()
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList,
		mcp.MethodSkillsList:
		return s.list(ctx, who, m.Method, m.Params)
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodComplete:
		return s.callDeck(ctx, c.client, who, m, &requestPeer{sender: voice, session: c})
	case mcp.MethodSetLevel:
		return s.setLevel(ctx, c, who, m)
	case mcp.MethodSubscribe:
		return s.subscribe(ctx, c, who, m)
	case mcp.MethodUnsubscribe:
		return s.unsubscribe(ctx, c, who, m)
	case mcp.MethodInitialize:
		return failureReply(mcp.CodeInvalidRequest, "Already initialized", nil)
	case mcp.MethodDiscover, mcp.MethodListen:
		return methodNotFound(m.Method) // exists in the stateless generation only
	}
	// an unknown method or a method of an extension
	return s.callDeck(ctx, c.client, who, m, &requestPeer{sender: voice, session: c})
}

// runCancellable calls run for a request, with a context that the session can cancel. It returns the reply of run, or
// an error reply if the request must be refused, see beginRequest.
func (c *session) runCancellable(ctx context.Context, m mcp.Message, run func(context.Context) reply) reply {
	ctx, cancel, refusal := c.beginRequest(ctx, m.ID)
	if !refusal.isNone() {
		return refusal
	}
	defer c.endRequest(m.ID, cancel)
	return c.runUnlessEnded(ctx, run)
}

// beginRequest registers a request, so that the session can cancel it. It returns an error reply if the session has too
// many requests in progress, or if a request with the same id is in progress.
func (c *session) beginRequest(ctx context.Context, id json.RawMessage) (context.Context,
	context.CancelCauseFunc, reply) {
	if c.inFlight.len() >= maxInFlight {
		return nil, nil, failureReply(mcp.CodeInternal, "Too many requests are in progress", nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if !c.inFlight.add(id, cancel) {
		cancel(nil)
		return nil, nil, failureReply(mcp.CodeInvalidRequest, "A request of this id is in progress", nil)
	}
	return ctx, cancel, reply{}
}

func (c *session) endRequest(id json.RawMessage, cancel context.CancelCauseFunc) {
	c.inFlight.remove(id)
	cancel(nil)
}

// runUnlessEnded calls run for a registered request and returns the reply. If the session has ended, it does not call
// run.
func (c *session) runUnlessEnded(ctx context.Context, run func(context.Context) reply) reply {
	select {
	case <-c.ended:
		return replyOrEnded(ctx, reply{})
	default:
		return replyOrEnded(ctx, run(ctx))
	}
}

// handleNotification handles a notification of a stateful client.
func (s *Server) handleNotification(ctx context.Context, c *session, who drawbridge.Caller, m mcp.Message) {
	switch m.Method {
	case mcp.NoteCancelled:
		c.inFlight.cancel(m.Params)
	case mcp.NoteInitialized:
	default:
		if d, ok := s.deck.(notifiableDeck); ok {
			d.ForwardNotification(ctx, who, m.Method, m.Params)
		}
	}
}

func (s *Server) setLevel(ctx context.Context, c *session, who drawbridge.Caller, m mcp.Message) reply {
	level := rawjson.GetString(m.Params, "level")
	if err := s.deck.SetLogLevel(ctx, who, level); err != nil {
		return s.errorReply(ctx, who, m.Method, m.Params, err)
	}
	c.watcher.setLevel(level)
	return emptyResult()
}

func (s *Server) subscribe(ctx context.Context, c *session, who drawbridge.Caller, m mcp.Message) reply {
	uri := rawjson.GetString(m.Params, "uri")
	// The resource is added to the watcher first, because an update may arrive before Subscribe returns.
	if !c.watcher.watchResource(uri) {
		return failureReply(mcp.CodeInvalidParams, "Too many subscriptions", nil)
	}
	if err := s.deck.Subscribe(ctx, who, uri); err != nil {
		c.watcher.forgetResource(uri)
		return s.errorReply(ctx, who, m.Method, m.Params, err)
	}
	return emptyResult()
}

func (s *Server) unsubscribe(ctx context.Context, c *session, who drawbridge.Caller, m mcp.Message) reply {
	uri := rawjson.GetString(m.Params, "uri")
	c.watcher.forgetResource(uri)
	if err := s.deck.Unsubscribe(ctx, who, uri); err != nil {
		return s.errorReply(ctx, who, m.Method, m.Params, err)
	}
	return emptyResult()
}

// emptyResult returns the reply to a request that returns no data.
func emptyResult() reply { return resultReply([]byte(`{}`)) }
