package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// A legacyClient is a stateful client over HTTP that looks at bytes.
type legacyClient struct {
	t            testing.TB
	url, session string
}

// connect initializes with these capabilities, in that revision.
func connect(t testing.TB, url, version, capabilities string) *legacyClient {
	t.Helper()
	c := &legacyClient{t: t, url: url}
	resp := c.post(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"c","version":"1"}}}`, version, capabilities))
	defer resp.Body.Close()
	if c.session = resp.Header.Get(mcp.HeaderSession); resp.StatusCode != 200 || c.session == "" {
		t.Fatalf("initialize: status %d, session %q", resp.StatusCode, c.session)
	}
	return c
}

func (c *legacyClient) request(method, body string) *http.Request {
	r := httpRequest(c.t, method, c.url, body)
	if c.session != "" {
		r.Header.Set(mcp.HeaderSession, c.session)
	}
	return r
}

func (c *legacyClient) post(body string) *http.Response {
	c.t.Helper()
	resp, err := http.DefaultClient.Do(c.request(http.MethodPost, body))
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// do posts a body and gives status and answer.
func (c *legacyClient) do(body string) (int, string) {
	c.t.Helper()
	return send(c.t, c.request(http.MethodPost, body))
}

// stream opens the session's stream. It is open when stream returns.
func (c *legacyClient) stream() (events *mcp.SSEReader, end func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	resp, err := http.DefaultClient.Do(c.request(http.MethodGet, "").WithContext(ctx))
	if err != nil {
		c.t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		c.t.Fatalf("stream: status %d, type %q", resp.StatusCode, got)
	}
	return mcp.NewSSEReader(resp.Body, 0), func() { cancel(); resp.Body.Close() }
}

// next gives the next message of a stream.
func next(t testing.TB, r *mcp.SSEReader) string {
	t.Helper()
	return string(nextEvent(t, r).Data)
}

// nextEvent gives the next event that is a message.
func nextEvent(t testing.TB, r *mcp.SSEReader) mcp.SSEEvent {
	t.Helper()
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Data) > 0 {
			return e
		}
	}
}

func TestInitialize(t *testing.T) {
	d := newFakeDeck()
	d.instructions = "Be kind."
	url := serveHTTP(t, d, Options{})
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05",
		"2026-07-28": "2025-11-25", "1.0": "2025-11-25",
	} {
		c := &legacyClient{t: t, url: url}
		_, body := c.do(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + asked +
			`","capabilities":{}}}`)
		wantBody := `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"` + want + `","capabilities":` +
			d.capabilities +
			`,"serverInfo":` + ourInfo + `,"instructions":"Be kind."}}`
		if diff := cmp.Diff(wantBody, body); diff != "" {
			t.Errorf("asked for %s (-want +got):\n%s", asked, diff)
		}
	}
}

func TestLegacyAnswers(t *testing.T) {
	d := newFakeDeck()
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{}`)
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ``},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, 200, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, 200, `{"jsonrpc":"2.0","id":2,"result":{"tools":[` +
			echoTool + `,` + plainTool + `]}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"n":18446744073709551617}}}`, 200,
			`{"jsonrpc":"2.0","id":3,"result":{"content":[],"structuredContent":{"n":18446744073709551617}}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"info"}}`, 200,
			`{"jsonrpc":"2.0","id":4,"result":{}}`},
		{`{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"test://watched"}}`, 200,
			`{"jsonrpc":"2.0","id":5,"result":{}}`},
		{`{"jsonrpc":"2.0","id":6,"method":"resources/subscribe","params":{"uri":"test://missing"}}`, 200,
			`{"jsonrpc":"2.0","id":6,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"test://missing"}}}`},
		{`{"jsonrpc":"2.0","id":7,"method":"resources/unsubscribe","params":{"uri":"test://watched"}}`, 200,
			`{"jsonrpc":"2.0","id":7,"result":{}}`},
		{`{"jsonrpc":"2.0","id":8,"method":"no/such"}`, 200,
			`{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found: no/such"}}`},
		{`{"jsonrpc":"2.0","id":99,"result":{}}`, 202, ``},
		{`[{"jsonrpc":"2.0","id":9,"method":"ping"}]`, 400,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This revision has no batches"}}`},
	} {
		status, body := c.do(tt.body)
		if status != tt.status || body != tt.want {
			t.Errorf("%s\n got %d %s\nwant %d %s", tt.body, status, body, tt.status, tt.want)
		}
	}
	want := []string{"level info", "subscribe test://watched", "subscribe test://missing", "unsubscribe test://watched"}
	if diff := cmp.Diff(want, d.noted()); diff != "" {
		t.Errorf("the deck was told (-want +got):\n%s", diff)
	}
}

func TestSessionIsNeeded(t *testing.T) {
	url := serveHTTP(t, newFakeDeck(), Options{})
	live := connect(t, url, "2025-11-25", `{}`)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, tt := range []struct {
		name, method, session, version string
		want                           int
	}{
		{"none", http.MethodPost, "", "", 400},
		{"one that is not there", http.MethodPost, "nonsense", "", 404},
		{"a live one", http.MethodPost, live.session, "2025-11-25", 200},
		{"a live one, another version", http.MethodPost, live.session, "1999-01-01", 400},
		{"stream without one", http.MethodGet, "", "", 400},
		{"stream of one that is not there", http.MethodGet, "nonsense", "", 404},
		{"stream of a stateless client", http.MethodGet, "", "2026-07-28", 405},
		{"end of none", http.MethodDelete, "", "", 400},
		{"end of one that is not there", http.MethodDelete, "nonsense", "", 404},
		{"end of a stateless client's", http.MethodDelete, "", "2026-07-28", 405},
		{"end", http.MethodDelete, live.session, "", 204},
		{"one that has ended", http.MethodPost, live.session, "", 404},
		{"another method", http.MethodPut, live.session, "", 405},
	} {
		c := &legacyClient{t: t, url: url, session: tt.session}
		r := c.request(tt.method, list)
		if tt.version != "" {
			r.Header.Set(mcp.HeaderVersion, tt.version)
		}
		if status, body := send(t, r); status != tt.want {
			t.Errorf("%s: status %d, want %d: %s", tt.name, status, tt.want, body)
		}
	}
}

// TestSessionBelongsToItsPrincipal: knowing the id of a session is not having it.
func TestSessionBelongsToItsPrincipal(t *testing.T) {
	d := newFakeDeck()
	s := newServer(t, d, Options{})
	c := s.newSession(s.o.Caller, nil)
	if !s.addSession(c) {
		t.Fatal("there is no room for one session")
	}
	if _, _, ok := s.sessions.get(c.caller.Session, "somebody else"); ok {
		t.Error("somebody else has got the session")
	}
	if _, done, ok := s.sessions.get(c.caller.Session, "me"); !ok {
		t.Error("its owner has not got the session")
	} else {
		done()
	}
}

func TestBatch(t *testing.T) {
	c := connect(t, serveHTTP(t, newFakeDeck(), Options{}), "2025-03-26", `{}`)
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"b","method":"no"},7]`, 400,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid batch"}}`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"b","method":"no"},{}]`, 200,
			`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"b","error":{"code":-32601,"message":"Method not found: no"}},` +
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}]`},
		{`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, 202, ``},
		{`[]`, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Empty batch"}}`},
	} {
		if status, body := c.do(tt.body); status != tt.status || body != tt.want {
			t.Errorf("%s\n got %d %s\nwant %d %s", tt.body, status, body, tt.status, tt.want)
		}
	}
}

// TestAsk shows a server asking the client in the course of a call: on the call's own stream, answered by a POST.
func TestAsk(t *testing.T) {
	d := newFakeDeck()
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		got, err := call.Peer.Request(ctx, mcp.MethodElicitation, json.RawMessage(`{"message":"?","n":1.0}`))
		if err != nil {
			return drawbridge.Result{}, err
		}
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[],"structuredContent":` + string(got) + `}`)}, nil
	}
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{"elicitation":{}}`)
	for _, tt := range []struct{ id, reply, want string }{
		{"1", `"result":{"action":"accept","content":{"x":1e400}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"action":"accept","content":{"x":1e400}}}}`},
		{`"2"`, `"result":{"action":"decline"}`,
			`{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"action":"decline"}}}`},
		{"3", `"error":{"code":-1,"message":"no","data":0}`,
			`{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no","data":0}}`},
	} {
		resp := c.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`)
		events := mcp.NewSSEReader(resp.Body, 0)
		question := `{"jsonrpc":"2.0","id":` + strings.Trim(tt.id, `"`) +
			`,"method":"elicitation/create","params":{"message":"?","n":1.0}}`
		if diff := cmp.Diff(question, next(t, events)); diff != "" {
			t.Errorf("question (-want +got):\n%s", diff)
		}
		if status, _ := c.do(`{"jsonrpc":"2.0","id":` + tt.id + `,` + tt.reply + `}`); status != 202 {
			t.Errorf("the answer was not accepted: %d", status)
		}
		if diff := cmp.Diff(tt.want, next(t, events)); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		resp.Body.Close()
	}
}

// TestAskEnds shows what ends a question that is not answered.
func TestAskEnds(t *testing.T) {
	d := newFakeDeck()
	asked := make(chan error, 1)
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		_, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
		asked <- err
		return drawbridge.Result{}, err
	}
	url := serveHTTP(t, d, Options{})
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`
	for _, tt := range []struct {
		name, capabilities string
		end                func(c *legacyClient, resp *http.Response)
		want               drawbridge.FaultCode
	}{
		{"the client cannot be asked", `{}`, nil, drawbridge.NotFound},
		{"the session ends", `{"roots":{}}`, func(c *legacyClient, _ *http.Response) {
			send(t,
				c.request(http.MethodDelete, ""))
		}, drawbridge.Transient},
		{"the call is cancelled", `{"roots":{}}`, func(c *legacyClient, _ *http.Response) {
			c.do(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		}, drawbridge.Transient},
	} {
		c := connect(t, url, "2025-11-25", tt.capabilities)
		resp := c.post(call)
		events := mcp.NewSSEReader(resp.Body, 0)
		if tt.end != nil {
			next(t, events)
			tt.end(c, resp)
		}
		if f, ok := errors.AsType[*drawbridge.Fault](<-asked); !ok || f.Code != tt.want {
			t.Errorf("%s: %v, want a fault %s", tt.name, f, tt.want)
		}
		if tt.name == "the call is cancelled" {
			for _, want := range []string{
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
				`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Cancelled"}}`,
			} {
				if diff := cmp.Diff(want, next(t, events)); diff != "" {
					t.Errorf("event (-want +got):\n%s", diff)
				}
			}
		}
		resp.Body.Close()
	}
}

func TestAskable(t *testing.T) {
	const form, url = `{"message":"?"}`, `{"mode":"url","url":"https://example.org"}`
	for _, tt := range []struct {
		capabilities, method, params string
		want                         bool
	}{
		{`{}`, mcp.MethodSampling, ``, false},
		{`{"sampling":{}}`, mcp.MethodSampling, ``, true},
		{`{"roots":{}}`, mcp.MethodRootsList, ``, true},
		{``, mcp.MethodRootsList, ``, false},
		{`{"elicitation":{}}`, mcp.MethodElicitation, form, true},
		{`{"elicitation":{}}`, mcp.MethodElicitation, url, false},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicitation, form, false},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicitation, url, true},
		{`{"elicitation":{"url":{},"form":{}}}`, mcp.MethodElicitation, form, true},
		{`{"sampling":{}}`, "no/such", ``, false},
	} {
		if got := canAsk(json.RawMessage(tt.capabilities), tt.method, json.RawMessage(tt.params)); got != tt.want {
			t.Errorf("askable(%s, %s, %s) = %v", tt.capabilities, tt.method, tt.params, got)
		}
	}
}

// TestLegacyCancel: hanging up is no cancellation for a stateful client; a notification is, and the end of the session.
func TestLegacyCancel(t *testing.T) {
	d := newFakeDeck()
	begun, alone, ended := make(chan struct{}), make(chan error), make(chan string)
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		begun <- struct{}{}
		<-call.Peer.(*requestPeer).sender.done()
		alone <- ctx.Err()
		<-ctx.Done()
		ended <- context.Cause(ctx).Error()
		return drawbridge.Result{}, ctx.Err()
	}
	url := serveHTTP(t, d, Options{})
	for want, end := range map[string]func(*legacyClient){
		"no longer needed": func(c *legacyClient) {
			c.do(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x","reason":"no longer needed"}}`)
		},
		"cancelled by the caller": func(c *legacyClient) {
			c.do(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
		},
		"the session ended": func(c *legacyClient) { send(t, c.request(http.MethodDelete, "")) },
	} {
		c := connect(t, url, "2025-11-25", `{}`)
		ctx, hangUp := context.WithCancel(t.Context())
		posted := make(chan struct{})
		go func() {
			defer close(posted)
			body := `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo"}}`
			if resp, err := http.DefaultClient.Do(c.request(http.MethodPost, body).WithContext(ctx)); err == nil {
				resp.Body.Close()
			}
		}()
		<-begun
		hangUp()
		<-posted
		if err := <-alone; err != nil {
			t.Errorf("hanging up has cancelled the call: %v", err)
		}
		if _, body := c.do(`{"jsonrpc":"2.0","id":"x","method":"ping"}`); !strings.Contains(body, "in progress") {
			t.Errorf("an id that is in progress was taken again: %s", body)
		}
		end(c)
		if got := <-ended; got != want {
			t.Errorf("the call ended because %q, want %q", got, want)
		}
	}
}

// A toldFake is a deck that wants to know what its callers say on their own.
type toldFake struct{ *fakeDeck }

func (d toldFake) ForwardNotification(_ context.Context, caller drawbridge.Caller, method string,
	params json.RawMessage) {
	_ = d.note(method, caller.Protocol+string(params))
}

func TestWhatClientsSayOnTheirOwn(t *testing.T) {
	d := toldFake{newFakeDeck()}
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{"roots":{"listChanged":true}}`)
	c.do(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	c.do(`{"jsonrpc":"2.0","method":"notifications/acme/moved","params":{"n":1.0}}`)
	c.do(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	want := []string{"notifications/roots/list_changed 2025-11-25", `notifications/acme/moved 2025-11-25{"n":1.0}`}
	if diff := cmp.Diff(want, d.noted()); diff != "" {
		t.Errorf("the deck was told (-want +got):\n%s", diff)
	}
}

// TestSessionStream shows what a session hears outside calls: what it missed, once; log lines that are severe enough;
// the resources it subscribed to.
func TestSessionStream(t *testing.T) {
	d := newFakeDeck()
	c := connect(t, serveHTTP(t, d, Options{}), "2025-11-25", `{}`)
	c.do(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}`)
	c.do(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"test://watched"}}`)
	line := func(level string) deck.Event {
		return deck.Event{Kind: deck.ServerNotified,
			Notification: drawbridge.ServerNotification{Method: mcp.NoteMessage,
				Params: json.RawMessage(`{"level":"` + level + `"}`)}}
	}
	for range 3 {
		d.tell(deck.Event{Kind: deck.ToolsChanged})
		d.tell(line("error")) // nobody is there to read it
	}
	events, end := c.stream()
	want := func(data string) {
		t.Helper()
		if diff := cmp.Diff(data, next(t, events)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
	want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	d.tell(line("info"))
	private := line("error")
	private.Notification.Session, private.Notification.Params = "somebody else's",
		json.RawMessage(`{"level":"error","data":"private"}`)
	d.tell(private)
	d.tell(line("error"))
	want(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}`)
	d.tell(deck.Event{Kind: deck.ResourceUpdated, URI: "test://other"})
	d.tell(deck.Event{Kind: deck.ResourceUpdated, URI: watchedURI,
		Notification: drawbridge.ServerNotification{Params: json.RawMessage(`{"uri":"test://watched","x":1}`)}})
	want(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://watched","x":1}}`)

	later, endLater := c.stream()
	if _, err := events.Next(); err == nil {
		t.Error("there are two streams")
	}
	end()
	d.tell(deck.Event{Kind: deck.PromptsChanged})
	events = later
	want(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
	endLater()
}

// TestSessionsEnd shows sessions that end by themselves: idle ones after their time, the idlest where there are too
// many, those in use never.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDeck()
		s := newServer(t, d, Options{SessionTimeout: time.Minute, MaxSessions: 2})
		open := func() *session {
			c := s.newSession(s.o.Caller, nil)
			if !s.addSession(c) {
				c.stopWatching()
				return nil
			}
			return c
		}
		has := func(c *session) bool {
			_, done, ok := s.sessions.get(c.caller.Session, "me")
			if ok {
				done()
			}
			return ok
		}
		first := open()
		<-time.After(time.Second)
		second := open()
		third := open()
		if has(first) || !has(second) || !has(third) {
			t.Error("it is not the idlest that made room")
		}
		done := second.markBusy()
		<-time.After(2 * time.Minute)
		s.sweep(time.Now())
		if !has(second) || has(third) {
			t.Error("it is not the idle one that ended")
		}
		fourth := open()
		defer fourth.markBusy()()
		if fifth := open(); fifth != nil {
			t.Error("a session in use made room")
		}
		done()
		if diff := cmp.Diff([]string{"end session", "end session"}, d.noted()); diff != "" {
			t.Errorf("the deck was told (-want +got):\n%s", diff)
		}
	})
}

// TestSessionsMakeRoomForTheirOwn: who opens sessions without end, or says very much of itself in each, ends its own,
// and nobody else's.
func TestSessionsMakeRoomForTheirOwn(t *testing.T) {
	loud := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(strings.Repeat("x", maxClientBytes/16)), "clientInfo", "name"))
	for name, params := range map[string]json.RawMessage{"many": nil, "loud ones": loud} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, newFakeDeck(), Options{MaxSessions: 18})
			open := func(principal string, params json.RawMessage) *session {
				c := s.newSession(somebody(principal, "mcp", ""), params)
				if !s.addSession(c) {
					t.Fatal("no room")
				}
				return c
			}
			quiet := []*session{open("bob", nil), open("bob", nil), open("eve", nil)}
			var last *session
			for range 20 {
				last = open("ada", params)
			}
			for _, c := range append(quiet, last) {
				_, done, ok := s.sessions.get(c.caller.Session, c.caller.Principal)
				if !ok {
					t.Fatalf("a session of %s made room", c.caller.Principal)
				}
				done()
			}
		})
	}
}

// TestSessionsHaveSoMuchToKeep: what clients say of themselves may be megabytes each, and is kept with their sessions.
func TestSessionsHaveSoMuchToKeep(t *testing.T) {
	s := newServer(t, newFakeDeck(), Options{MaxSessions: 1000})
	loud := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(strings.Repeat("x", maxClientBytes/16)), "clientInfo", "name"))
	var last *session
	for i := range 100 {
		last = s.newSession(s.o.Caller, loud)
		if !s.addSession(last) {
			t.Fatalf("session %d was not let in", i)
		}
	}
	said := 0
	for _, c := range s.sessions.byID {
		said += len(c.caller.Client)
	}
	if n := len(s.sessions.byID); n != 15 || said != s.sessions.clientBytes || said > maxClientBytes {
		t.Errorf("%d sessions keep %d bytes, and %d were counted", n, said, s.sessions.clientBytes)
	}
	if !s.sessions.remove(last) || s.sessions.remove(last) {
		t.Error("a session was not to be removed, or twice")
	}
	for _, c := range s.sessions.removeAll() {
		s.endSession(c)
	}
	s.endSession(last)
	if s.sessions.clientBytes != 0 {
		t.Errorf("no session keeps %d bytes", s.sessions.clientBytes)
	}
}

// TestSlowAnswerStaysAlive: an answer that takes long becomes a stream with signs of life.
func TestSlowAnswerStaysAlive(t *testing.T) {
	d := newFakeDeck()
	finish := make(chan struct{})
	d.do = func(context.Context, drawbridge.Call) (drawbridge.Result, error) {
		<-finish
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	c := connect(t, serveHTTP(t, d, Options{KeepAlive: time.Millisecond}), "2025-06-18", `{}`)
	resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for range 3 {
		if line, err := r.ReadString('\n'); err != nil || line != ": \n" {
			t.Fatalf("read %q, %v; want a comment", line, err)
		}
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(finish)
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		next(t, mcp.NewSSEReader(r, 0))); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}
