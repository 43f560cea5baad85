package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	// contentionTime is how long a client counts as active after its last call.
	contentionTime = 500 * time.Millisecond
	// youngTime is how long an unanswered call delays the next call of its client. A call that takes longer probably
	// does not use the processors of this machine but waits, so it must not delay other calls.
	youngTime = 20 * time.Millisecond
)

// A CallPacer limits how fast clients start calls, so that many calls of one client do not delay the calls of others.
// While several clients are active, a client's next call begins when its last call is answered, or 20 ms after its last
// call began. The calls of one client begin in the order in which they arrived. If only one client is active, its calls
// do not wait. The zero value is ready to use, and several servers may share it.
type CallPacer struct {
	mu      sync.Mutex
	clients map[clientKey]*pacedClient
	// latest holds the last call of each of the two clients that called most recently, the newest first.
	latest [2]lastCall
}

// A clientKey identifies a client: by its transport, its principal, its declared name and, on stdio, its session.
type clientKey struct {
	transport                  drawbridge.Transport
	principal, client, session string
}

func clientKeyOf(c drawbridge.Caller) clientKey {
	k := clientKey{transport: c.Transport, principal: c.Principal, client: rawjson.GetString(c.Client, "name")}
	if c.Transport == drawbridge.StdioTransport {
		k.session = c.Session
	}
	return k
}

type lastCall struct {
	client clientKey
	at     time.Time
}

// A pacedClient holds the calls of one client. began are the start times of the calls in progress. waiting are the
// calls that have not begun.
type pacedClient struct {
	began   []*time.Time
	waiting []*waitingCall
	timer   *time.Timer // begins the next waiting call; set only while calls wait
}

type waitingCall struct {
	began time.Time
	turn  chan struct{} // closed when the call may begin
}

// enter waits until a call of the client k may begin. The caller must call leave when the call is answered. The error
// is the cause of ctx's end.
func (p *CallPacer) enter(ctx context.Context, k clientKey) (leave func(), err error) {
	now := time.Now()
	w := &waitingCall{}
	p.mu.Lock()
	p.noteCall(k, now)
	c := p.clients[k]
	if c == nil {
		if p.clients == nil {
			p.clients = map[clientKey]*pacedClient{}
		}
		c = &pacedClient{}
		p.clients[k] = c
	}
	leave = func() { p.leave(k, c, w) }
	if len(c.waiting) == 0 && p.mayBegin(k, c, now) {
		c.begin(w, now)
		p.mu.Unlock()
		return leave, nil
	}
	w.turn = make(chan struct{})
	c.waiting = append(c.waiting, w)
	p.beginWaiting(k, c)
	p.mu.Unlock()
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// noteCall updates latest with a call of the client k. The caller must hold mu.
func (p *CallPacer) noteCall(k clientKey, now time.Time) {
	if p.latest[0].client != k {
		p.latest[1] = p.latest[0]
	}
	p.latest[0] = lastCall{k, now}
}

// mayBegin reports whether the client's next call may begin now. The caller must hold mu.
func (p *CallPacer) mayBegin(k clientKey, c *pacedClient, now time.Time) bool {
	other := p.latest[0]
	if other.client == k {
		other = p.latest[1]
	}
	if other.at.IsZero() || now.Sub(other.at) > contentionTime {
		return true
	}
	return len(c.began) == 0 || now.Sub(*c.began[len(c.began)-1]) >= youngTime
}

func (c *pacedClient) begin(w *waitingCall, now time.Time) {
	w.began = now
	c.began = append(c.began, &w.began)
}

// beginWaiting begins the waiting calls that may begin now, and sets the timer for the next one. The caller must hold
// mu.
func (p *CallPacer) beginWaiting(k clientKey, c *pacedClient) {
	now := time.Now()
	for len(c.waiting) > 0 && p.mayBegin(k, c, now) {
		w := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.begin(w, now)
		close(w.turn)
	}
	switch {
	case len(c.waiting) == 0 && c.timer != nil:
		c.timer.Stop()
		c.timer = nil
	case len(c.waiting) > 0 && c.timer == nil:
		c.timer = time.AfterFunc(youngTime, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			c.timer = nil
			p.beginWaiting(k, c)
		})
	}
}

// leave removes a call that was answered, or that ended while it waited.
func (p *CallPacer) leave(k clientKey, c *pacedClient, w *waitingCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.began = slices.DeleteFunc(c.began, func(began *time.Time) bool { return began == &w.began })
	c.waiting = slices.DeleteFunc(c.waiting, func(other *waitingCall) bool { return other == w })
	p.beginWaiting(k, c)
	if len(c.began) == 0 && len(c.waiting) == 0 && p.clients[k] == c {
		delete(p.clients, k)
	}
}
