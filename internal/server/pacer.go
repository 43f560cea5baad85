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
	// contentionTime is for how long after its last call a client counts as active.
	contentionTime = 500 * time.Millisecond
	// youngTime is for how long a call without an answer takes the turn of its client. A call that takes longer waits
	// for something else than our processors, and must not keep the next one back.
	youngTime = 20 * time.Millisecond
)

// A CallPacer keeps many calls of one client from delaying the calls of others. While several clients are active, each
// has one turn: its next call begins when the last one was answered, or after 20 ms. The calls of a client wait in their
// order. A client that is alone is not paced. The zero value is ready, and several servers may share it.
type CallPacer struct {
	mu      sync.Mutex
	clients map[clientKey]*pacedClient
	// latest are the last calls of the two clients that called last, the newest first.
	latest [2]lastCall
}

// A clientKey identifies a client: by its principal, its name and, on stdio, its session.
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

// A pacedClient has the calls of one client that have begun, by their start, and those that wait.
type pacedClient struct {
	began   []*time.Time
	waiting []*waitingCall
	timer   *time.Timer // set while calls wait: the turn of the last call ends
}

type waitingCall struct {
	began time.Time
	turn  chan struct{} // closed when the call may begin
}

// enter waits for the turn of a call. Call leave when the call was answered. The error is ctx's.
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

// noteCall stores the last calls of the two clients that called last. The caller holds mu.
func (p *CallPacer) noteCall(k clientKey, now time.Time) {
	if p.latest[0].client != k {
		p.latest[1] = p.latest[0]
	}
	p.latest[0] = lastCall{k, now}
}

// mayBegin reports whether the client's next call may begin. The caller holds mu.
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

// beginWaiting begins the waiting calls whose turn it is, and sets the timer for the next. The caller holds mu.
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

// leave ends a call, whether it began or still waits.
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
