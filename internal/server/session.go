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
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A session is one stateful client: what it declared, and its open requests.
type session struct {
	// caller is who opened it, with the rights that they had then; see as.
	caller drawbridge.Caller
	// client is the key of the caller's client.
	client   clientKey
	watcher  *watcher
	inFlight inFlightRequests
	events   *eventLog
	// stopWatching takes the watcher off the list of those who hear events; ended is closed when the session is over.
	stopWatching func()
	ended        chan struct{}

	mu sync.Mutex
	// lastUsed is when the session was last used; busy counts its requests and streams in progress.
	lastUsed time.Time
	busy     int
	over     bool
	// clientScopes restrict the rights of its client.
	clientScopes clientScopes
	// proof is the token by which its caller was proved last; see visit.
	proof drawbridge.Secret
	// pendingAsks has our own requests that the client has not answered, lastAsk the last id given.
	pendingAsks map[string]chan mcp.Message
	lastAsk     int
	// endStream ends the connection of the session's open stream; nil if there is none. streams counts them.
	endStream func()
	streams   int
}

// newSession makes a session for a caller, whose client sent these params of initialize.
func (s *Server) newSession(caller drawbridge.Caller, params json.RawMessage) *session {
	caller = s.clientScopes.sessionCaller(caller, params)
	caller.Session = rand.Text()
	c := &session{
		caller:       caller,
		client:       clientKeyOf(caller),
		clientScopes: s.clientScopes,
		watcher:      newWatcher(caller, nil, listChanges{true, true, true}),
		ended:        make(chan struct{}),
		lastUsed:     time.Now(),
	}
	c.events = newEventLog(caller.Session, &s.keptEventBytes, caller.Protocol >= mcp.Version20251125)
	c.stopWatching = s.watchers.add(c.watcher)
	return c
}

// endSession ends everything that the session has open, and removes its state from the deck. It is called once for a
// session.
func (s *Server) endSession(c *session) {
	c.stopWatching()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	close(c.ended)
	c.events.close()
	c.inFlight.cancelAll(drawbridge.NewCancellation("the session ended"))
	s.activity.sessionEnded(c.client)
	s.notifySession(c, false)
	s.deck.EndSession(c.caller)
}

// sessionBegan counts a session that was opened.
func (s *Server) sessionBegan(c *session) {
	s.activity.sessionOpened(c.client)
	s.notifySession(c, true)
}

func (s *Server) notifySession(c *session, began bool) {
	if s.o.OnSession != nil {
		s.o.OnSession(c.caller, began)
	}
}

// initializeResult is the answer to initialize.
func (s *Server) initializeResult(c *session) reply {
	out := append([]byte(`{"protocolVersion":`), rawjson.Quote(c.caller.Protocol)...)
	out = append(append(out, `,"capabilities":`...), s.capabilities(c.caller)...)
	out = append(append(out, `,"serverInfo":`...), s.info...)
	if text := s.deck.Instructions(c.caller); text != "" {
		out = rawjson.AppendQuoted(append(out, `,"instructions":`...), text)
	}
	return resultReply(append(out, '}'))
}

// callerFor returns the session's caller with the scopes and the token of one request. A later request of the same
// principal may have a new token, with more or fewer scopes.
func (c *session) callerFor(proved drawbridge.Caller) drawbridge.Caller {
	who := c.caller
	who.Kind, who.Scopes, who.AccessToken = proved.Kind, proved.Scopes, proved.AccessToken
	return c.clientScopes.restrict(who)
}

// supportsBatches reports whether the session's revision has batches.
func (c *session) supportsBatches() bool { return c.caller.Protocol < mcp.Version20250618 }

// markBusy marks the session as in use until done is called.
func (c *session) markBusy() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	return c.markIdle
}

func (c *session) markIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	c.lastUsed = time.Now()
}

// idleSince returns since when the session is idle; false if it is in use.
func (c *session) idleSince() (since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastUsed, c.busy == 0
}

// openSessionStream makes a connection the only one of the session's stream: it ends an earlier one, whose client may
// be gone. With back, the client resumes after an event. closed is called at the end of the connection; later messages
// are kept for the next one if the client can resume.
func (c *session) openSessionStream(end func(), at eventPosition, back bool) (o sessionStream, closed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endStream != nil {
		c.endStream()
	}
	c.streams++
	mine := c.streams
	c.endStream = end
	c.watcher.attachReader()
	return c.events.openSessionStream(at, back), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams == mine {
			c.endStream = nil
			c.watcher.detachReader(c.events.canPrime())
		}
	}
}

// ask sends the client a request of ours, and waits for its answer. A client that lost its connection and may come back
// is waited for as long as ctx has time. The error is a *drawbridge.Fault.
func (c *session) ask(ctx context.Context, to sender, method string, params json.RawMessage) (json.RawMessage, error) {
	id, answer := c.newAskID()
	defer c.forgetAsk(id)
	if err := to.send(mcp.Message{ID: json.RawMessage(id), Method: method, Params: params}.Append(nil),
		true); err != nil {
		return nil, askFault(method, err)
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
		_ = to.send(mcp.Message{Method: mcp.NoteCancelled, Params: note}.Append(nil), false) // not required to arrive
		return nil, askFault(method, ctx.Err())
	case <-to.done():
		return nil, askFault(method, errCallerGone)
	case <-c.ended:
		return nil, askFault(method, errors.New("the session ended"))
	}
}

// askFault is the fault of a request that the caller did not answer.
func askFault(method string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "ask the caller: " +
		method, Err: err}
}

func (c *session) newAskID() (string, chan mcp.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastAsk++
	id, answer := strconv.Itoa(c.lastAsk), make(chan mcp.Message, 1)
	if c.pendingAsks == nil {
		c.pendingAsks = map[string]chan mcp.Message{}
	}
	c.pendingAsks[id] = answer
	return id, answer
}

func (c *session) forgetAsk(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pendingAsks, id)
}

// handleResponse handles a client's response to one of our requests. A response without a waiting request is dropped.
func (c *session) handleResponse(m mcp.Message) {
	id := string(m.ID)
	if text, ok := rawjson.DecodeString(m.ID); ok {
		id = text // a number that came back as a string
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.pendingAsks[id]; answer != nil {
		answer <- m
		delete(c.pendingAsks, id)
	}
}

// inFlightRequests are the requests in progress whose caller may cancel them, by the bytes of their id.
type inFlightRequests struct {
	mu  sync.Mutex
	all map[string]context.CancelCauseFunc
}

// add reports false if a request with that id is in progress.
func (f *inFlightRequests) add(id json.RawMessage, cancel context.CancelCauseFunc) bool {
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

func (f *inFlightRequests) remove(id json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, string(id))
}

// cancel ends the request that the params of a cancelled notification name, for the reason that they give.
func (f *inFlightRequests) cancel(params json.RawMessage) {
	f.mu.Lock()
	cancel := f.all[string(rawjson.Get(params, "requestId"))]
	f.mu.Unlock()
	if cancel != nil {
		cancel(drawbridge.NewCancellation(rawjson.GetString(params, "reason")))
	}
}

func (f *inFlightRequests) cancelAll(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.all {
		cancel(cause)
	}
}

func (f *inFlightRequests) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}
