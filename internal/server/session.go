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

// A session is the session of one stateful client: the data that the client declared, and its open requests.
type session struct {
	// caller is the caller that opened the session, with the rights of the request that opened it. Later requests may
	// have other rights, see callerFor.
	caller drawbridge.Caller
	// client identifies the session's client.
	client   clientKey
	watcher  *watcher
	inFlight inFlightRequests
	events   *eventLog
	// stopWatching ends the delivery of events to watcher. ended is closed when the session has ended.
	stopWatching func()
	ended        chan struct{}

	mu sync.Mutex
	// lastUsed is the time when the session was last used; busy is the number of its requests and streams in progress.
	lastUsed time.Time
	busy     int
	over     bool
	// clientScopes restrict the rights of the client by its declared name.
	clientScopes clientScopes
	// proof is the token of the session's last request. See ongoingRequests.setSession.
	proof drawbridge.Secret
	// pendingAsks maps the id of a request that was sent to the client to the channel for its response. lastAsk is the
	// last id used.
	pendingAsks map[string]chan mcp.Message
	lastAsk     int
	// endStream ends the current connection of the session's own stream; nil without a connection. streams is the
	// number of connections that this stream has had.
	endStream func()
	streams   int
}

// newSession returns a new session for a caller. params are the params of the initialize request.
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

// endSession ends all requests and streams of a session, and removes the session's state from the deck. It must be
// called only once for a session.
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

// sessionBegan counts a new session and calls Options.OnSession.
func (s *Server) sessionBegan(c *session) {
	s.activity.sessionOpened(c.client)
	s.notifySession(c, true)
}

func (s *Server) notifySession(c *session, began bool) {
	if s.o.OnSession != nil {
		s.o.OnSession(c.caller, began)
	}
}

// initializeResult returns the response to initialize.
func (s *Server) initializeResult(c *session) reply {
	out := append([]byte(`{"protocolVersion":`), rawjson.Quote(c.caller.Protocol)...)
	out = append(append(out, `,"capabilities":`...), s.capabilities(c.caller)...)
	out = append(append(out, `,"serverInfo":`...), s.info...)
	if text := s.deck.Instructions(c.caller); text != "" {
		out = rawjson.AppendQuoted(append(out, `,"instructions":`...), text)
	}
	return resultReply(append(out, '}'))
}

// callerFor returns the session's caller with the kind, the scopes, the origin and the access token of proved, the
// authenticated caller of one request. A later request of the same principal may have a new token, with more or fewer
// scopes, or with another origin.
func (c *session) callerFor(proved drawbridge.Caller) drawbridge.Caller {
	who := c.caller
	who.Kind, who.Scopes, who.Origin, who.AccessToken = proved.Kind, proved.Scopes, proved.Origin, proved.AccessToken
	return c.clientScopes.restrict(who)
}

// supportsBatches reports whether the session's protocol version allows batches.
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

// idleSince returns the time since which the session has been idle; ok is false if the session is in use.
func (c *session) idleSince() (since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastUsed, c.busy == 0
}

// openSessionStream opens a connection of the session's own stream, which end can end. If the stream already has a
// connection, that connection is ended, because its client may have disconnected. If back is set, the client resumes
// the stream after the event at. The caller must call closed when the connection ends. Messages that are sent later are
// stored for the next connection, if the client can resume.
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

// ask sends a request to the client and waits for the response. If the client has lost its connection but may
// reconnect, ask waits until ctx ends. The error is a *drawbridge.Fault.
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
		_ = to.send(mcp.Message{Method: mcp.NoteCancelled, Params: note}.Append(nil), false) // best effort
		return nil, askFault(method, ctx.Err())
	case <-to.done():
		return nil, askFault(method, errCallerGone)
	case <-c.ended:
		return nil, askFault(method, errors.New("the session ended"))
	}
}

// askFault returns the fault for a request that the client did not answer.
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

// handleResponse passes a client's response to the call of ask that waits for it. If no call waits for the response, it
// is dropped.
func (c *session) handleResponse(m mcp.Message) {
	id := string(m.ID)
	if text, ok := rawjson.DecodeString(m.ID); ok {
		id = text // the client sent the number as a string
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.pendingAsks[id]; answer != nil {
		answer <- m
		delete(c.pendingAsks, id)
	}
}

// inFlightRequests are the requests in progress that the client may cancel. The key is the JSON text of the request's
// id.
type inFlightRequests struct {
	mu  sync.Mutex
	all map[string]context.CancelCauseFunc
}

// add adds a request with the function that cancels it. It returns false if a request with the same id is in progress.
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

// cancel cancels the request that a "cancelled" notification names in its params, with the reason in these params.
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
