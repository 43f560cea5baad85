package server

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxBatch is how many messages a batch may have.
const maxBatch = 100

// session finds the session of a request, in use until done is called. It says false where it has answered itself: 400
// for a request that names none, 404 for one that is not there, or not this caller's, which tells the client to
// initialize again.
func (d *door) session(w http.ResponseWriter, r *http.Request, v *visit) (c *session, done func(), ok bool) {
	id := r.Header.Get(wire.HeaderSession)
	if id == "" {
		text := "Bad Request: the " + wire.HeaderSession + " header is missing: initialize first"
		if r.Method == http.MethodGet { // so begins a client of the older transport
			text += ", by a POST to this URL (Streamable HTTP; HTTP+SSE of 2024-11-05 is not served)"
		}
		http.Error(w, text, http.StatusBadRequest)
		return nil, nil, false
	}
	if version := r.Header.Get(wire.HeaderVersion); version != "" && !slices.Contains(wire.LegacyVersions(), version) {
		http.Error(w, "Bad Request: unsupported "+wire.HeaderVersion, http.StatusBadRequest)
		return nil, nil, false
	}
	c, done, ok = d.s.sessions.get(id, v.caller.Principal)
	if !ok {
		http.Error(w, "Not Found: there is no such session", http.StatusNotFound)
		return nil, nil, false
	}
	d.s.visits.at(v, c)
	return c, done, true
}

// legacyPost takes one message of a stateful client.
func (d *door) legacyPost(x *exchange, m wire.Message) {
	if m.Method == wire.MethodInitialize && m.IsRequest() {
		d.initialize(x, m)
		return
	}
	c, done, ok := d.session(x.w, x.r, x.visit)
	if !ok {
		return
	}
	defer done()
	x.of = c
	who := c.as(x.visit.caller)
	switch {
	case m.IsResponse():
		c.answered(m)
		x.accepted()
	case m.IsNotification():
		d.s.noted(x.r.Context(), c, who, m)
		x.accepted()
	default:
		ctx, cancel := d.detached(x)
		defer cancel()
		x.alive(d.s.o.KeepAlive)
		x.answer(m.ID, http.StatusOK, c.inFlight(ctx, m, func(ctx context.Context) reply { return d.s.legacy(ctx, c, who, m, x) }))
	}
}

// detached is the context of a stateful request. It does not end with the connection: "disconnection should not be
// interpreted as the client cancelling its request" (transports of 2025-11-25). It ends with the session, with us, or with
// what proved the caller.
func (d *door) detached(x *exchange) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	stop, stay := context.AfterFunc(d.life, cancel), context.AfterFunc(x.visit.life, cancel)
	return ctx, func() { stop(); stay(); cancel() }
}

// initialize opens a session.
func (d *door) initialize(x *exchange, m wire.Message) {
	if refusal := checkCapabilities(wire.Get(m.Params, "capabilities")); !refusal.isNone() {
		x.answer(m.ID, http.StatusBadRequest, refusal)
		return
	}
	c := d.s.newSession(x.visit.caller, m.Params)
	d.s.visits.at(x.visit, c)
	defer c.use()()
	if !d.s.admit(c) {
		c.unlist()
		x.answer(m.ID, http.StatusServiceUnavailable, failure(wire.CodeInternal, "Too many sessions are in use", nil))
		return
	}
	x.session = c.caller.Session
	x.answer(m.ID, http.StatusOK, d.s.initialized(c))
}

// legacyBatch takes several messages at once, where the session's revision has batches.
func (d *door) legacyBatch(x *exchange, body []byte) {
	messages, refusal := readBatch(body)
	if !refusal.isNone() {
		x.answer(nil, http.StatusBadRequest, refusal)
		return
	}
	leave, ok := d.enter(x, messages...)
	if !ok {
		return
	}
	defer leave()
	c, done, ok := d.session(x.w, x.r, x.visit)
	if !ok {
		return
	}
	defer done()
	x.of = c
	if !c.batches() {
		x.answer(nil, http.StatusBadRequest, noBatches())
		return
	}
	ctx, cancel := d.detached(x)
	defer cancel()
	x.alive(d.s.o.KeepAlive)
	x.answerAll(d.s.batch(ctx, c, c.as(x.visit.caller), messages, x, cancelled()))
}

// readBatch reads the messages of a batch.
func readBatch(body []byte) ([]letter, reply) {
	if err := wire.Valid(body); err != nil {
		return nil, failure(wire.CodeParse, "Parse error: "+err.Error(), nil)
	}
	var messages []letter
	for raw := range wire.Elements(body) {
		l, err := readLetter(raw)
		if err != nil || len(messages) == maxBatch {
			return nil, failure(wire.CodeInvalidRequest, "Invalid batch", nil)
		}
		messages = append(messages, l)
	}
	if len(messages) == 0 {
		return nil, failure(wire.CodeInvalidRequest, "Empty batch", nil)
	}
	return messages, reply{}
}

// batch answers the messages of a batch, each answer a line, in the order of the requests. These run side by side, as
// JSON-RPC allows: one may wait for what a later message of the batch says, which cancels it or answers a question. What
// is cancelled is answered with cancelled; the zero reply is none.
func (s *Server) batch(ctx context.Context, c *session, who drawbridge.Caller, messages []letter, voice voice, cancelled reply) [][]byte {
	answers := make([][]byte, len(messages))
	var running sync.WaitGroup
	for i, l := range messages {
		m := l.Message
		switch {
		case !l.refusal.isNone():
			answers[i] = l.refusal.line(l.to)
		case m.IsResponse():
			c.answered(m)
		case m.IsNotification():
			s.noted(ctx, c, who, m)
		default:
			// From here on it can be cancelled, although nobody knows when it will begin.
			ctx, cancel, refusal := c.takeOff(ctx, m.ID)
			if !refusal.isNone() {
				answers[i] = refusal.line(m.ID)
				continue
			}
			running.Go(func() {
				defer c.land(m.ID, cancel)
				answer := c.fly(ctx, func(ctx context.Context) reply { return s.legacy(ctx, c, who, m, voice) })
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

// delete ends a session.
func (d *door) delete(w http.ResponseWriter, r *http.Request, v *visit) {
	if wire.EraOf(r.Header.Get(wire.HeaderVersion)) == drawbridge.Modern {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed: this revision has no sessions", http.StatusMethodNotAllowed)
		return
	}
	c, done, ok := d.session(w, r, v)
	if !ok {
		return
	}
	defer done()
	if d.s.sessions.remove(c) {
		d.s.endSession(c)
	}
	w.WriteHeader(http.StatusNoContent)
}
