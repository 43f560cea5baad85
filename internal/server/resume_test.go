package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// A connection is one response that is a stream of events.
type connection struct {
	*mcp.SSEReader
	t    testing.TB
	resp *http.Response
}

// callStream posts a call whose answer is to be a stream.
func (c *legacyClient) callStream(body string) connection {
	c.t.Helper()
	resp := c.post(body)
	return connection{mcp.NewSSEReader(resp.Body, 0), c.t, resp}
}

// resume asks for what came behind an event.
func (c *legacyClient) resume(last string) connection {
	c.t.Helper()
	r := c.request(http.MethodGet, "")
	r.Header.Set(mcp.HeaderLastEvent, last)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		c.t.Fatalf("resume behind %s: status %d", last, resp.StatusCode)
	}
	return connection{mcp.NewSSEReader(resp.Body, 0), c.t, resp}
}

// closeConnection breaks the connection.
func (c connection) hangUp() { _ = c.resp.Body.Close() }

// want reads messages, and gives the id of the last event.
func (c connection) want(messages ...string) (last string) {
	c.t.Helper()
	for _, want := range messages {
		e := nextEvent(c.t, c.SSEReader)
		if diff := cmp.Diff(want, string(e.Data)); diff != "" {
			c.t.Errorf("event %s (-want +got):\n%s", e.ID, diff)
		}
		last = e.ID
	}
	return last
}

// primed reads the event that begins a stream, and gives its id.
func (c connection) primed() string {
	c.t.Helper()
	e, err := c.Next()
	if err != nil || e.ID == "" || e.Data == nil || len(e.Data) > 0 || e.Retry != time.Second {
		c.t.Fatalf("the stream begins with %+v, %v", e, err)
	}
	return e.ID
}

// end wants the stream to end.
func (c connection) end() {
	c.t.Helper()
	if e, err := c.Next(); err != io.EOF {
		c.t.Errorf("then came %+v, %v", e, err)
	}
}

// A puppet is a deck whose calls do what the test has them do.
type puppet struct {
	*fakeDeck
	calls chan *puppetCall
}

type puppetCall struct {
	drawbridge.Call
	t   testing.TB
	ctx context.Context
	// result ends the call.
	result chan string
}

func newPuppet(t testing.TB) *puppet {
	p := &puppet{newFakeDeck(), make(chan *puppetCall)}
	p.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		c := &puppetCall{call, t, ctx, make(chan string, 1)}
		select {
		case p.calls <- c:
		case <-ctx.Done():
			return drawbridge.Result{}, ctx.Err()
		}
		select {
		case result := <-c.result:
			return drawbridge.Result{Raw: json.RawMessage(result)}, nil
		case <-ctx.Done():
			return drawbridge.Result{}, ctx.Err()
		}
	}
	return p
}

// begin posts a call, which says a first log line.
func (p *puppet) begin(c *legacyClient) (connection, *puppetCall) {
	c.t.Helper()
	posted := make(chan connection, 1)
	go func() { posted <- c.callStream(callOne) }()
	call := <-p.calls
	call.say(1)
	return <-posted, call
}

// say sends a log line in the course of the call.
func (c *puppetCall) say(n int) {
	c.t.Helper()
	if err := c.Peer.Notify(c.ctx, mcp.NoteMessage, logLine(n)); err != nil {
		c.t.Errorf("log line %d: %v", n, err)
	}
}

// ask asks for roots, and gives what came of it.
func (c *puppetCall) ask() <-chan string {
	asked := make(chan string, 1)
	go func() {
		answer, err := c.Peer.Request(c.ctx, mcp.MethodRootsList, nil)
		if err != nil {
			answer = json.RawMessage(err.Error())
		}
		asked <- string(answer)
	}()
	return asked
}

func logLine(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"level":"info","data":%d}`, n))
}

func said(n int) string {
	return `{"jsonrpc":"2.0","method":"notifications/message","params":` + string(logLine(n)) + `}`
}

const (
	callOne   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`
	answerOne = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
)

// TestResume shows a client that loses its connection in the course of a call, twice, and misses nothing.
func TestResume(t *testing.T) {
	for version, primes := range map[string]bool{"2025-11-25": true, "2025-06-18": false, "2025-03-26": false} {
		d := newPuppet(t)
		c := connect(t, serveHTTP(t, d, Options{}), version, `{}`)
		stream, call := d.begin(c)
		ids := map[string]bool{}
		if primes {
			ids[stream.primed()] = true
		}
		first := stream.want(said(1))
		call.say(2)
		second := stream.want(said(2))
		stream.hangUp()
		call.say(3)
		stream = c.resume(first) // the second has perhaps not arrived
		third := stream.want(said(2), said(3))
		call.say(4)
		stream.want(said(4))
		stream.hangUp()
		call.result <- `{"content":[]}`
		stream = c.resume(third)
		last := stream.want(said(4), answerOne)
		stream.end()
		for _, id := range []string{first, second, third, last} {
			if ids[id] || id == "" {
				t.Errorf("%s: the event id %q is not unique: %v", version, id, ids)
			}
			ids[id] = true
		}
		if status, body := c.refused(last); status != 405 ||
			body != "Method Not Allowed: this stream is over\n" {
			t.Errorf("%s: behind the end: %d %s", version, status, body)
		}
	}
}

// refused tries to resume behind an event.
func (c *legacyClient) refused(last string) (int, string) {
	r := c.request(http.MethodGet, "")
	r.Header.Set(mcp.HeaderLastEvent, last)
	return send(c.t, r)
}

// TestNoEmptyEvents: clients of revisions before 2025-11-25 take an event without data for a broken message.
func TestNoEmptyEvents(t *testing.T) {
	d := newPuppet(t)
	c := connect(t, serveHTTP(t, d, Options{KeepAlive: time.Millisecond}), "2025-06-18", `{}`)
	full := func(stream connection, want string) (last string) {
		t.Helper()
		e, err := stream.Next()
		if err != nil || string(e.Data) != want || e.ID == "" {
			t.Fatalf("the event is %+v, %v, want %s", e, err, want)
		}
		return e.ID
	}
	stream, call := d.begin(c)
	last := full(stream, said(1))
	stream.hangUp()
	stream = c.resume(last)
	call.say(2)
	full(stream, said(2))
	call.result <- `{"content":[]}`
	full(stream, answerOne)

	resp, err := http.DefaultClient.Do(c.request(http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	own := connection{mcp.NewSSEReader(resp.Body, 0), t, resp}
	d.tell(deck.Event{Kind: deck.ToolsChanged})
	full(own, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	own.hangUp()
}

// TestOlderTransport: a client of the two-endpoint transport begins with a GET, and is told what is served instead.
func TestOlderTransport(t *testing.T) {
	c := &legacyClient{t: t, url: serveHTTP(t, newFakeDeck(), Options{})}
	want := "Bad Request: the Mcp-Session-Id header is missing: initialize first, by a POST to this URL " +
		"(Streamable HTTP; HTTP+SSE of 2024-11-05 is not served)\n"
	if status, body := send(t, c.request(http.MethodGet, "")); status != 400 || body != want {
		t.Errorf("got %d %s", status, body)
	}
}

// TestResumeInSilence: a stream begins with an event to go on from, every time, since a client that comes back and
// hears nothing has forgotten where it went on from.
func TestResumeInSilence(t *testing.T) {
	d := newPuppet(t)
	c := connect(t, serveHTTP(t, d, Options{KeepAlive: time.Millisecond}), "2025-11-25", `{}`)
	posted := make(chan connection, 1)
	go func() { posted <- c.callStream(callOne) }()
	call := <-d.calls
	stream := <-posted
	seen := map[string]bool{}
	for range 3 {
		id := stream.primed()
		if seen[id] {
			t.Errorf("two events have the id %s", id)
		}
		seen[id] = true
		stream.hangUp()
		stream = c.resume(id)
	}
	stream.primed()
	call.result <- `{"content":[]}`
	stream.want(answerOne)
	stream.end()
}

// TestResumeTakesOver: a client that comes back while its old connection seems alive hears the rest on the new one
// only.
func TestResumeTakesOver(t *testing.T) {
	d := newPuppet(t)
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{}`)
	old, call := d.begin(c)
	first := old.want(said(1))
	stream := c.resume(first)
	stream.primed()
	call.say(2)
	stream.want(said(2))
	call.result <- `{"content":[]}`
	stream.want(answerOne)
	stream.end()
	old.end()
}

// TestAskResumed: a question that its client could not hear, or perhaps not, waits for it.
func TestAskResumed(t *testing.T) {
	d := newPuppet(t)
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{"roots":{}}`)
	stream, call := d.begin(c)
	first := stream.want(said(1))
	asked := call.ask()
	question := stream.want(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	stream.hangUp()
	stream = c.resume(first)
	if again := stream.want(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`); again != question {
		t.Errorf("the question is event %s, and was %s", again, question)
	}
	stream.hangUp()
	c.do(`{"jsonrpc":"2.0","id":1,"result":{"roots":[1]}}`)
	if got := <-asked; got != `{"roots":[1]}` {
		t.Errorf("the first question was answered %s", got)
	}
	asked = call.ask()
	stream = c.resume(question)
	stream.want(`{"jsonrpc":"2.0","id":2,"method":"roots/list"}`)
	c.do(`{"jsonrpc":"2.0","id":2,"result":{"roots":[2]}}`)
	if got := <-asked; got != `{"roots":[2]}` {
		t.Errorf("the second question was answered %s", got)
	}
	asked = call.ask()
	stream.want(`{"jsonrpc":"2.0","id":3,"method":"roots/list"}`)
	stream.hangUp()
	c.do(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if got := <-asked; !strings.Contains(got, "canceled") {
		t.Errorf("the third question ended with %s", got)
	}
}

// TestPoll: a client that is told to come back later does, and hears the rest; one that knows no such thing is not
// told. A connection on which something was said already is kept.
func TestPoll(t *testing.T) {
	for _, tt := range []struct {
		version string
		polls   bool
	}{{"2025-11-25", true}, {"2025-06-18", false}} {
		d := newPuppet(t)
		c := connect(t, serveHTTP(t, d, Options{}), tt.version, `{}`)
		stream, call := d.begin(c)
		poll := func() { call.Peer.(drawbridge.ReconnectRequester).RequestReconnect(10 * time.Millisecond) }
		poll()
		call.say(2)
		last := stream.want(said(1), said(2))
		stream.hangUp()
		stream = c.resume(last)
		for range 2 {
			if tt.polls {
				last = stream.primed()
			}
			poll()
			if !tt.polls {
				break
			}
			if e, err := stream.Next(); err != nil || e.Retry != 10*time.Millisecond || e.Data != nil || e.ID != "" {
				t.Errorf("the client is told %+v, %v", e, err)
			}
			stream.end()
			stream = c.resume(last)
		}
		call.say(3)
		stream.want(said(3))
		call.result <- `{"content":[]}`
		stream.want(answerOne)
		stream.end()
	}
}

// TestPollBeforeAnything: where nothing was said, polling begins the stream; for a client that takes none it does
// nothing.
func TestPollBeforeAnything(t *testing.T) {
	d := newPuppet(t)
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{}`)
	posted := make(chan connection, 1)
	go func() { posted <- c.callStream(callOne) }()
	call := <-d.calls
	call.Peer.(drawbridge.ReconnectRequester).RequestReconnect(time.Hour)
	stream := <-posted
	if !stream.resp.Close {
		t.Error("the connection would be used again")
	}
	id := stream.primed()
	if e, err := stream.Next(); err != nil || e.Retry != maxPollDelay {
		t.Errorf("the client is told %+v, %v", e, err)
	}
	stream.end()
	call.result <- `{"content":[]}`
	c.resume(id).want(answerOne)

	r := c.request(http.MethodPost, callOne)
	r.Header.Set("Accept", "application/json")
	go func() {
		call := <-d.calls
		call.Peer.(drawbridge.ReconnectRequester).RequestReconnect(0)
		call.result <- `{"content":[]}`
	}()
	if status, body := send(t, r); status != 200 || body != answerOne {
		t.Errorf("a client that takes no stream got %d %s", status, body)
	}
}

// TestOwnStreamResumed: what a session hears outside calls waits for a client that lost its connection, and is heard
// once.
func TestOwnStreamResumed(t *testing.T) {
	d := newFakeDeck()
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{}`)
	tell := func(n int) {
		d.tell(deck.Event{Kind: deck.ServerNotified,
			Notification: drawbridge.ServerNotification{Method: mcp.NoteMessage, Params: logLine(n)}})
	}
	open := func() connection {
		t.Helper()
		resp, err := http.DefaultClient.Do(c.request(http.MethodGet, ""))
		if err != nil {
			t.Fatal(err)
		}
		return connection{mcp.NewSSEReader(resp.Body, 0), t, resp}
	}
	stream := open()
	stream.primed()
	tell(1)
	tell(2)
	first := stream.want(said(1))
	stream.want(said(2))
	back := c.resume(first)
	second := back.want(said(2))
	stream.end() // there is one connection
	tell(3)
	back.want(said(3))
	back.hangUp()
	back = c.resume(second)
	third := back.want(said(3))
	back.hangUp()

	other := open() // it does not go on with anything
	other.primed()
	tell(4)
	fourth := other.want(said(4))
	other.hangUp()
	late := c.resume(third) // long forgotten, and no reason to refuse: the stream goes on
	if got := late.want(said(4)); got != fourth {
		t.Errorf("the event %s is now %s", fourth, got)
	}
	late.hangUp()
}

// TestOwnStreamAway: what is said while nobody is there is heard by whoever comes back.
func TestOwnStreamAway(t *testing.T) {
	w := newWatcher(owner, nil, listChanges{})
	notice := deck.Event{Kind: deck.ServerNotified, Notification: drawbridge.ServerNotification{Method: mcp.NoteMessage,
		Params: logLine(1)}}
	w.addEvent(notice)
	w.attachReader()
	w.detachReader(true)
	w.addEvent(notice)
	if w.send([]byte("a question"), true) == nil {
		t.Error("a question was taken that nobody hears")
	}
	if got := len(w.takeNotifications()); got != 1 {
		t.Errorf("%d notices were kept, want the one since", got)
	}
	w.addEvent(notice)
	w.detachReader(false)
	w.addEvent(notice)
	if got := len(w.takeNotifications()); got != 0 {
		t.Errorf("%d notices were kept for nobody", got)
	}
}

// TestEventIDs: an event id of another session, or of none, is refused, and so is one that was not given.
func TestEventIDs(t *testing.T) {
	d := newFakeDeck()
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)},
			call.Peer.Notify(ctx, mcp.NoteMessage, logLine(1))
	}
	url := serveHTTP(t, d, Options{})
	mine, theirs := connect(t, url, "2025-11-25", `{}`), connect(t, url, "2025-11-25", `{}`)
	var last [2]string
	for i, c := range []*legacyClient{mine, theirs} {
		stream := c.callStream(callOne)
		last[i] = stream.want(said(1))
		stream.want(answerOne)
		stream.end()
	}
	tag, _, _ := strings.Cut(last[0], "-")
	for id, want := range map[string]int{
		last[0]: 200, last[1]: 400, tag + "-1-9": 400, tag + "-2-0": 400, tag + "-01-1": 400, tag + "-1-+1": 400,
		tag + "--1-1": 400, tag + "-1": 400, tag: 400, "1-1": 400, "nonsense": 400, last[0] + "-1": 400,
		tag + "-1-99999999999999999999": 400, "x" + last[0]: 400,
	} {
		if status, body := mine.refused(id); status != want {
			t.Errorf("%q: status %d, want %d: %s", id, status, want, body)
		}
	}
}

// TestNothingIsKeptOfObjects: an answer that is one JSON object leaves nothing behind, nor does a session that has
// ended.
func TestNothingIsKeptOfObjects(t *testing.T) {
	d := newPuppet(t)
	s := newServer(t, d, Options{})
	web := httptest.NewServer(s.Handler())
	defer func() { _ = s.Close(); web.Close() }()
	c := connect(t, web.URL, "2025-11-25", `{}`)
	c.do(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if n := s.keptEventBytes.Load(); n != 0 {
		t.Errorf("an object has left %d bytes", n)
	}
	stream, call := d.begin(c)
	stream.want(said(1))
	call.result <- `{"content":[]}`
	stream.want(answerOne)
	stream.end()
	if s.keptEventBytes.Load() == 0 {
		t.Error("nothing is kept of a stream")
	}
	send(t, c.request(http.MethodDelete, ""))
	if n := s.keptEventBytes.Load(); n != 0 {
		t.Errorf("%d bytes are kept of a session that has ended", n)
	}
}

// TestCloseEndsResumed: a stream that was resumed does not keep the server from closing.
func TestCloseEndsResumed(t *testing.T) {
	d := newPuppet(t)
	s := newServer(t, d, Options{})
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	c := connect(t, web.URL, "2025-11-25", `{}`)
	stream, _ := d.begin(c)
	first := stream.want(said(1))
	stream = c.resume(first)
	stream.primed()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	stream.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Cancelled"}}`)
	stream.end()
}
