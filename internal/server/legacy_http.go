package server

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// maxBatch is the maximum number of messages in a batch.
const maxBatch = 100

// findSession returns the session of a request and marks it as busy until done is called. If there is no such session,
// it sends an error response and returns false. The status is 400 if the request has no session id, and 404 if the
// session is unknown or belongs to another caller. The status 404 makes the client send initialize again.
func (d *httpHandler) findSession(w http.ResponseWriter, r *http.Request, v *authenticatedRequest) (c *session,
	done func(), ok bool) {
	id := r.Header.Get(mcp.HeaderSession)
	if id == "" {
		text := "Bad Request: the " + mcp.HeaderSession + " header is missing: initialize first"
		if r.Method == http.MethodGet { // a client of the HTTP+SSE transport sends GET first
			text += ", by a POST to this URL (Streamable HTTP; HTTP+SSE of 2024-11-05 is not served)"
		}
		http.Error(w, text, http.StatusBadRequest)
		return nil, nil, false
	}
	if version := r.Header.Get(mcp.HeaderVersion); version != "" && !slices.Contains(mcp.LegacyVersions(), version) {
		http.Error(w, "Bad Request: unsupported "+mcp.HeaderVersion, http.StatusBadRequest)
		return nil, nil, false
	}
	c, done, ok = d.s.sessions.get(id, v.caller.Principal)
	if !ok {
		http.Error(w, "Not Found: unknown session, initialize again", http.StatusNotFound)
		return nil, nil, false
	}
	d.s.ongoing.setSession(v, c)
	return c, done, true
}

// legacyPost handles one message of a stateful client.
func (d *httpHandler) legacyPost(x *postExchange, m mcp.Message) {
	if m.Method == mcp.MethodInitialize && m.IsRequest() {
		d.openSession(x, m)
		return
	}
	c, done, ok := d.findSession(x.w, x.r, x.auth)
	if !ok {
		return
	}
	defer done()
	x.ofSession = c
	who := c.callerFor(x.auth.caller)
	switch {
	case m.IsResponse():
		c.handleResponse(m)
		x.respondAccepted()
	case m.IsNotification():
		d.s.handleNotification(x.r.Context(), c, who, m)
		x.respondAccepted()
	default:
		ctx, cancel := d.detachedContext(x)
		defer cancel()
		x.startKeepAlive(d.s.o.KeepAlive)
		x.respond(m.ID, http.StatusOK, c.runCancellable(ctx, m,
			func(ctx context.Context) reply { return d.s.handleLegacy(ctx, c, who, m, x) }))
	}
}

// detachedContext returns the context of a stateful request. The context does not end with the connection:
// "disconnection should not be interpreted as the client cancelling its request" (transports of 2025-11-25). It ends
// with the server or when the caller's token becomes invalid. The session can cancel the request in addition.
func (d *httpHandler) detachedContext(x *postExchange) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	stop, stay := context.AfterFunc(d.life, cancel), context.AfterFunc(x.auth.life, cancel)
	return ctx, func() { stop(); stay(); cancel() }
}

// openSession handles initialize: it opens a session and responds with its id.
func (d *httpHandler) openSession(x *postExchange, m mcp.Message) {
	if refusal := checkCapabilities(rawjson.Get(m.Params, "capabilities")); !refusal.isNone() {
		x.respond(m.ID, http.StatusBadRequest, refusal)
		return
	}
	c := d.s.newSession(x.auth.caller, m.Params)
	d.s.ongoing.setSession(x.auth, c)
	defer c.markBusy()()
	if !d.s.addSession(c) {
		c.stopWatching()
		x.respond(m.ID, http.StatusServiceUnavailable, failureReply(mcp.CodeInternal,
			"Too many sessions are in use", nil))
		return
	}
	d.s.sessionBegan(c)
	x.newSessionID = c.caller.Session
	x.respond(m.ID, http.StatusOK, d.s.initializeResult(c))
}

// legacyBatch handles a batch of messages. It sends an error response if the protocol version of the session does not
// allow batches.
func (d *httpHandler) legacyBatch(x *postExchange, body []byte) {
	messages, refusal := readBatch(body)
	if !refusal.isNone() {
		x.respond(nil, http.StatusBadRequest, refusal)
		return
	}
	leave, ok := d.limitInProgress(x, messages...)
	if !ok {
		return
	}
	defer leave()
	c, done, ok := d.findSession(x.w, x.r, x.auth)
	if !ok {
		return
	}
	defer done()
	x.ofSession = c
	if !c.supportsBatches() {
		x.respond(nil, http.StatusBadRequest, noBatches())
		return
	}
	ctx, cancel := d.detachedContext(x)
	defer cancel()
	x.startKeepAlive(d.s.o.KeepAlive)
	x.respondBatch(d.s.batch(ctx, c, c.callerFor(x.auth.caller), messages, x, cancelledReply()))
}

// readBatch parses the messages of a batch. It returns an error reply for an invalid batch.
func readBatch(body []byte) ([]incoming, reply) {
	if err := rawjson.Valid(body); err != nil {
		return nil, failureReply(mcp.CodeParse, "Parse error: "+err.Error(), nil)
	}
	var messages []incoming
	for raw := range rawjson.Elements(body) {
		l, err := readIncoming(raw)
		if err != nil || len(messages) == maxBatch {
			return nil, failureReply(mcp.CodeInvalidRequest, "Invalid batch", nil)
		}
		messages = append(messages, l)
	}
	if len(messages) == 0 {
		return nil, failureReply(mcp.CodeInvalidRequest, "Empty batch", nil)
	}
	return messages, reply{}
}

// batch handles the messages of a batch and returns the encoded responses, in the order of the requests. The requests
// run concurrently, as JSON-RPC allows, because a request may wait for a later message of the batch. That message may
// cancel the request, or answer a question. cancelled is the reply to a cancelled request; if it is the zero reply, a
// cancelled request gets no response.
func (s *Server) batch(ctx context.Context, c *session, who drawbridge.Caller, messages []incoming, voice sender,
	cancelled reply) [][]byte {
	answers := make([][]byte, len(messages))
	var running sync.WaitGroup
	for i, l := range messages {
		m := l.Message
		switch {
		case !l.refusal.isNone():
			answers[i] = l.refusal.line(l.refusalID)
		case m.IsResponse():
			c.handleResponse(m)
		case m.IsNotification():
			s.handleNotification(ctx, c, who, m)
		default:
			// The request is registered before it runs, so that a later message of the batch can cancel it.
			ctx, cancel, refusal := c.beginRequest(ctx, m.ID)
			if !refusal.isNone() {
				answers[i] = refusal.line(m.ID)
				continue
			}
			running.Go(func() {
				defer c.endRequest(m.ID, cancel)
				answer := c.runUnlessEnded(ctx, func(ctx context.Context) reply {
					return s.handleLegacy(ctx, c,
						who, m, voice)
				})
				if answer.isNone() {
					answer = cancelled
				}
				if !answer.isNone() {
					answers[i] = answer.line(m.ID)
				}
			})
		}
	}
	running.Wait()
	return slices.DeleteFunc(answers, func(line []byte) bool { return line == nil })
}

// serveDelete handles a DELETE request, which ends a session.
func (d *httpHandler) serveDelete(w http.ResponseWriter, r *http.Request, v *authenticatedRequest) {
	if mcp.EraOf(r.Header.Get(mcp.HeaderVersion)) == drawbridge.Modern {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed: this revision has no sessions", http.StatusMethodNotAllowed)
		return
	}
	c, done, ok := d.findSession(w, r, v)
	if !ok {
		return
	}
	defer done()
	if d.s.sessions.remove(c) {
		d.s.endSession(c)
	}
	w.WriteHeader(http.StatusNoContent)
}
