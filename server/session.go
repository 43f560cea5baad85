package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/server/claim"
	"github.com/drawbridge-mcp/drawbridge/server/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A session is one stateful client: what it said of itself, and what of its conversation is not over.
type session struct {
	// caller is who opened it, with the rights that they had then; see as.
	caller  drawbridge.Caller
	watcher *watcher
	flights flights
	trails  *trail.Trails
	// unlist takes the watcher off the list of those who hear events; ended is closed when the session is over.
	unlist func()
	ended  chan struct{}

	mu sync.Mutex
	// seen is when the session was last used; busy counts its requests and streams, while which it is in use.
	seen time.Time
	busy int
	over bool
	// parts say what of the rights its client has.
	parts claim.Parts
	// proof is the token by which its caller was proved last; see visit.
	proof drawbridge.Secret
	// asked has our own requests that the client has not answered, lastAsk the last id given.
	asked   map[string]chan wire.Message
	lastAsk int
	// endStream ends the connection of the stream that is open outside calls; nil where there is none. streams counts them.
	endStream func()
	streams   int
}

// newSession makes a session for a caller, whose client sent these params of initialize.
func (s *Server) newSession(caller drawbridge.Caller, params json.RawMessage) *session {
	caller = s.parts.Session(caller, params)
	caller.Session = rand.Text()
	c := &session{
		caller:  caller,
		parts:   s.parts,
		watcher: newWatcher(caller, nil, changes{true, true, true}),
		ended:   make(chan struct{}),
		seen:    time.Now(),
	}
	c.trails = trail.New(caller.Session, &s.kept, caller.Protocol >= wire.Version20251125)
	c.unlist = s.watchers.add(c.watcher)
	return c
}

// endSession ends what the session has open, and has the deck forget it. It is called once a session.
func (s *Server) endSession(c *session) {
	c.unlist()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	close(c.ended)
	c.trails.Close()
	c.flights.cancelAll(drawbridge.CancelledFor("the session ended"))
	s.deck.EndSession(c.caller)
}

// initialized is the answer to initialize.
func (s *Server) initialized(c *session) reply {
	out := append([]byte(`{"protocolVersion":`), wire.Quote(c.caller.Protocol)...)
	out = append(append(out, `,"capabilities":`...), s.capabilities(c.caller)...)
	out = append(append(out, `,"serverInfo":`...), s.info...)
	if text := s.deck.Instructions(c.caller); text != "" {
		out = wire.AppendQuoted(append(out, `,"instructions":`...), text)
	}
	return result(append(out, '}'))
}

// as is the session's caller with the rights and the proof that a request of theirs came with. Whoever proves to be the same
// principal may come with a fresh token, and with more rights or fewer.
func (c *session) as(proved drawbridge.Caller) drawbridge.Caller {
	who := c.caller
	who.Kind, who.Scopes, who.Proof = proved.Kind, proved.Scopes, proved.Proof
	return c.parts.Of(who)
}

// batches says whether the session's revision has batches.
func (c *session) batches() bool { return c.caller.Protocol < wire.Version20250618 }

// use marks the session as in use until done is called.
func (c *session) use() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	return c.unused
}

func (c *session) unused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	c.seen = time.Now()
}

// idle says since when the session is not in use; false where it is.
func (c *session) idle() (since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen, c.busy == 0
}

// openStream makes the connection that end ends the session's only one outside calls: an earlier one, whose client may be
// long gone, is ended. With back the client goes on behind an event. The function is to be called when the connection is
// over; what there is to say then is kept for the next, if the client can come back.
func (c *session) openStream(end func(), at trail.Position, back bool) (o trail.Own, closed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endStream != nil {
		c.endStream()
	}
	c.streams++
	mine := c.streams
	c.endStream = end
	c.watcher.listen()
	return c.trails.Own(at, back), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams == mine {
			c.endStream = nil
			c.watcher.leave(c.trails.Primes())
		}
	}
}

// ask sends the client a request of ours, and waits for its answer. A client that lost its connection and may come back
// is waited for as long as ctx has time. The error is a *drawbridge.Fault.
func (c *session) ask(ctx context.Context, to voice, method string, params json.RawMessage) (json.RawMessage, error) {
	id, answer := c.askID()
	defer c.forgetAsk(id)
	if err := to.say(wire.Message{ID: json.RawMessage(id), Method: method, Params: params}.Append(nil), true); err != nil {
		return nil, unasked(method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
				Step: method, Err: errors.New("the caller refused"), Raw: m.Error,
			}
		}
		return m.Result, nil
	case <-ctx.Done():
		note := json.RawMessage(`{"requestId":` + id + `}`)
		_ = to.say(wire.Message{Method: wire.NoteCancelled, Params: note}.Append(nil), false) // nobody waits for it
		return nil, unasked(method, ctx.Err())
	case <-to.gone():
		return nil, unasked(method, trail.ErrGone)
	case <-c.ended:
		return nil, unasked(method, errors.New("the session ended"))
	}
}

// unasked is the fault of a request that the caller did not answer.
func unasked(method string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "ask the caller: " + method, Err: err}
}

func (c *session) askID() (string, chan wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastAsk++
	id, answer := strconv.Itoa(c.lastAsk), make(chan wire.Message, 1)
	if c.asked == nil {
		c.asked = map[string]chan wire.Message{}
	}
	c.asked[id] = answer
	return id, answer
}

func (c *session) forgetAsk(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, id)
}

// answered takes a client's answer to a request of ours. One that nobody waits for is dropped.
func (c *session) answered(m wire.Message) {
	id := string(m.ID)
	if text, ok := wire.Text(m.ID); ok {
		id = text // a number that came back as a string
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.asked[id]; answer != nil {
		answer <- m
		delete(c.asked, id)
	}
}

// flights are the requests in progress whose caller may cancel them, by the bytes of their id.
type flights struct {
	mu  sync.Mutex
	all map[string]context.CancelCauseFunc
}

// add says false where a request of that id is in progress already.
func (f *flights) add(id json.RawMessage, cancel context.CancelCauseFunc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]context.CancelCauseFunc{}
	}
	if f.all[string(id)] != nil {
		return false
	}
	f.all[string(id)] = cancel
	return true
}

func (f *flights) remove(id json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, string(id))
}

// cancel ends the request that the params of a cancelled notification name, for the reason that they give.
func (f *flights) cancel(params json.RawMessage) {
	f.mu.Lock()
	cancel := f.all[string(wire.Get(params, "requestId"))]
	f.mu.Unlock()
	if cancel != nil {
		cancel(drawbridge.CancelledFor(wire.GetText(params, "reason")))
	}
}

func (f *flights) cancelAll(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.all {
		cancel(cause)
	}
}

func (f *flights) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}
