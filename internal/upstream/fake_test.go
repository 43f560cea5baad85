package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A fake is a server in memory, so that tests can run on a clock of their own. By default it is an honest legacy server
// with the tool echo; answers has what it does otherwise, by method: it returns the result, or nil for silence.
type fake struct {
	mu      sync.Mutex
	answers map[string]func(c *fakeConn, m mcp.Message) string
	refuse  error // what dialling gives
	dials   []time.Time
	conns   []*fakeConn
	heard   []mcp.Message
}

// A fakeConn is one connection to a fake, seen from the server.
type fakeConn struct {
	f    *fake
	in   chan []byte // to the server
	out  chan []byte // to the client
	done chan struct{}
	once sync.Once
}

const echoDefinition = `{"name":"echo","inputSchema":{"type":"object"}}`

func newFake() *fake {
	return &fake{answers: map[string]func(*fakeConn, mcp.Message) string{
		mcp.MethodInitialize: func(*fakeConn, mcp.Message) string {
			return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"fake","version":"1"}}`
		},
		mcp.MethodToolsList:   always(`{"tools":[` + echoDefinition + `]}`),
		mcp.MethodToolsCall:   always(`{"content":[]}`),
		mcp.MethodSubscribe:   always(`{}`),
		mcp.MethodUnsubscribe: always(`{}`),
		mcp.MethodSetLevel:    always(`{}`),
	}}
}

// newModernFake is an honest server of the modern generation. It keeps listening requests open.
func newModernFake(versions string) *fake {
	f := newFake()
	f.on(mcp.MethodInitialize, nil)
	f.on(mcp.MethodDiscover, always(`{"resultType":"complete","supportedVersions":[`+versions+
		`],"capabilities":{"tools":{"listChanged":true},"resources":{}},"instructions":"be kind","ttlMs":1000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"2"}}}`))
	f.on(mcp.MethodListen, func(c *fakeConn, m mcp.Message) string {
		c.note(mcp.NoteListenAck, `{"notifications":`+string(rawjson.Get(m.Params, "notifications"))+
			`,"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(m.ID)+`}}`)
		return ""
	})
	return f
}

func always(result string) func(*fakeConn, mcp.Message) string {
	return func(*fakeConn, mcp.Message) string { return result }
}

// on changes an answer; nil takes the method away.
func (f *fake) on(method string, answer func(*fakeConn, mcp.Message) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[method] = answer
	if answer == nil {
		delete(f.answers, method)
	}
}

func (f *fake) set(refuse error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

// count says how often the server heard a method.
func (f *fake) count(method string) int { return len(f.params(method)) }

// params gives the params of every message with a method, in order.
func (f *fake) params(method string) []json.RawMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []json.RawMessage
	for _, m := range f.heard {
		if m.Method == method {
			all = append(all, m.Params)
		}
	}
	return all
}

func (f *fake) dialled() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.dials)
}

// last is the newest connection.
func (f *fake) last() *fakeConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[len(f.conns)-1]
}

// open says how many connections there are.
func (f *fake) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.conns {
		select {
		case <-c.done:
		default:
			n++
		}
	}
	return n
}

// dial is a dialer.
func (f *fake) dial(ctx context.Context, s *session, _ bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials = append(f.dials, time.Now())
	if f.refuse != nil {
		return &startError{f.refuse}
	}
	c := &fakeConn{f: f, in: make(chan []byte, 100), out: make(chan []byte, 10_000), done: make(chan struct{})}
	f.conns = append(f.conns, c)
	go c.serve()
	s.conn = transport.NewStreamConn(ctx, transport.StreamConnOptions{
		Send: func(_ context.Context, msg []byte) error {
			select {
			case c.in <- msg:
				return nil
			case <-c.done:
				return io.ErrClosedPipe
			}
		},
		Receive: func() ([]byte, error) {
			select {
			case line := <-c.out:
				return line, nil
			case <-c.done:
				return nil, io.EOF
			}
		},
		Close:   func(context.Context) error { c.die(); return nil },
		Handler: s,
	})
	return nil
}

// die ends the connection, as a server that exits.
func (c *fakeConn) die() { c.once.Do(func() { close(c.done) }) }

func (c *fakeConn) serve() {
	for {
		select {
		case <-c.done:
			return
		case line := <-c.in:
			m, err := mcp.ParseMessage(line)
			if err != nil {
				panic(err)
			}
			c.f.mu.Lock()
			c.f.heard = append(c.f.heard, m)
			answer := c.f.answers[m.Method]
			c.f.mu.Unlock()
			switch {
			case answer != nil:
				if result := answer(c, m); result != "" {
					c.say(mcp.Message{ID: m.ID, Result: json.RawMessage(result)})
				}
			case m.IsRequest():
				c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeMethodNotFound, "method not found", nil)})
			}
		}
	}
}

func (c *fakeConn) say(m mcp.Message) {
	select {
	case c.out <- m.Append(nil):
	case <-c.done:
	}
}

func (c *fakeConn) note(method, params string) {
	c.say(mcp.Message{Method: method, Params: json.RawMessage(params)})
}

// progress notes progress on the call m.
func (c *fakeConn) progress(m mcp.Message, n int) {
	c.note(mcp.NoteProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, rawjson.Get(m.Params, "_meta",
		"progressToken"), n))
}

// A rig is a fleet that runs, with one server called "fake".
type rig struct {
	*Fleet
	t      *testing.T
	fake   *fake
	mem    *memory
	cancel context.CancelFunc
	ended  chan struct{}
}

const owner = "me"

// newRig runs a fleet of one fake. It must be called in a synctest bubble.
func newRig(t *testing.T, f *fake, o Options, change ...func(*config.Server)) *rig {
	t.Helper()
	row := config.Server{ID: "fake", Command: "fake", Type: "stdio", Hash: "hash", Enabled: true,
		Phase: drawbridge.Idle}
	for _, c := range change {
		c(&row)
	}
	mem := &memory{}
	o.MountStore, o.Principal, o.OnListed = mem, owner, mem.listed
	if o.LastStatuses == nil { // a server that is known to ask, so that callers have sessions of their own with it
		o.LastStatuses = map[string]drawbridge.ServerStatus{row.Hash: {Asks: true}}
	}
	fleet, err := NewFleet(t.Context(), []config.Server{row}, o)
	if err != nil {
		t.Fatal(err)
	}
	fleet.pool.dial = f.dial
	r := &rig{Fleet: fleet, t: t, fake: f, mem: mem, ended: make(chan struct{})}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(t.Context())
	go func() {
		defer close(r.ended)
		if err := fleet.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(r.end)
	synctest.Wait()
	return r
}

func (r *rig) end() {
	r.cancel()
	<-r.ended
	if n := r.fake.open(); n != 0 {
		r.t.Errorf("%d connections are open after the end", n)
	}
}

// later lets time pass.
func (r *rig) later(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) phase() drawbridge.ServerPhase { return r.Status()[0].Phase }

func caller(era drawbridge.ProtocolEra) drawbridge.Caller {
	return drawbridge.Caller{Kind: drawbridge.External, Principal: owner, Era: era}
}

// talker is a legacy caller whom a server may ask.
func talker(session string) drawbridge.Caller {
	c := caller(drawbridge.Legacy)
	c.Session, c.Protocol, c.Capabilities = session, "2025-06-18", json.RawMessage(`{"elicitation":{},"x":1e2}`)
	return c
}

func echo(c drawbridge.Caller) drawbridge.Call {
	return drawbridge.Call{Caller: c, Method: mcp.MethodToolsCall,
		Params: json.RawMessage(`{"name":"echo","arguments":{}}`)}
}

func toolCall(c drawbridge.Caller, tool, arguments string) drawbridge.Call {
	return drawbridge.Call{Caller: c, Method: mcp.MethodToolsCall,
		Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))}
}

// call makes a call that has to go well.
func (r *rig) call(call drawbridge.Call) drawbridge.Result {
	r.t.Helper()
	result, err := r.Do(r.t.Context(), "fake", call)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// fault makes a call that has to go wrong.
func (r *rig) fault(call drawbridge.Call) *drawbridge.Fault {
	r.t.Helper()
	result, err := r.Do(r.t.Context(), "fake", call)
	var f *drawbridge.Fault
	if !errors.As(err, &f) {
		r.t.Fatalf("got %s, %v; want a fault", result.Raw, err)
	}
	return f
}

// A memory takes down what a fleet remembers.
type memory struct {
	mu       sync.Mutex
	events   []string // "attempt", phases, "listing"
	listings []drawbridge.Listing
	dials    func() int
	onList   chan drawbridge.Listing
}

func (m *memory) add(event string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, event)
}

func (m *memory) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

func (m *memory) RecordAttempt(context.Context, string, drawbridge.ServerID) error {
	if m.dials != nil && m.dials() > 0 {
		m.add("a process before its attempt")
	}
	m.add("attempt")
	return nil
}

func (m *memory) SaveListing(context.Context, drawbridge.Listing) error { m.add("listing"); return nil }

func (m *memory) SaveStatus(_ context.Context, _ string, s drawbridge.ServerStatus) error {
	m.add(string(s.Phase))
	return nil
}

// listed is for OnListed.
func (m *memory) listed(_ context.Context, l drawbridge.Listing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listings = append(m.listings, l)
	if m.onList != nil {
		m.onList <- l
	}
}

func (m *memory) last() drawbridge.Listing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listings[len(m.listings)-1]
}

func (m *memory) listCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.listings)
}

// A peer takes down what reaches a caller, and answers what it is asked.
type peer struct {
	mu     sync.Mutex
	notes  []string
	asked  []string
	answer func(method string) (json.RawMessage, error)
	hold   chan struct{} // Notify waits for it
}

func (p *peer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, method+" "+string(params))
	return nil
}

func (p *peer) Request(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	p.mu.Lock()
	p.asked = append(p.asked, method+" "+string(params))
	p.mu.Unlock()
	if p.answer == nil {
		return json.RawMessage(`{"action":"accept"}`), nil
	}
	return p.answer(method)
}

func (p *peer) noted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notes)
}

func (p *peer) questions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}
