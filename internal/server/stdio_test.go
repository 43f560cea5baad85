package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// A pipeClient is the other end of ServeStdio.
type pipeClient struct {
	t     testing.TB
	in    *io.PipeWriter
	out   *io.PipeReader
	lines *mcp.LineReader
	ended chan error
	stop  context.CancelFunc
}

// dial runs ServeStdio until the test ends.
func dial(t testing.TB, d Deck) *pipeClient {
	t.Helper()
	s := newServer(t, d, Options{})
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	c := &pipeClient{t: t, in: in, out: out, lines: mcp.NewLineReader(out, 0), ended: make(chan error, 1), stop: stop}
	go func() {
		c.ended <- s.ServeStdio(ctx, theirIn, theirOut)
		theirOut.Close()
	}()
	t.Cleanup(func() {
		stop()
		in.Close()
		out.Close()
	})
	return c
}

func (c *pipeClient) send(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(c.in, line+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// want reads one line.
func (c *pipeClient) want(line string) {
	c.t.Helper()
	got, err := c.lines.Next()
	if err != nil {
		c.t.Fatalf("read: %v, want %s", err, line)
	}
	if diff := cmp.Diff(line, string(got)); diff != "" {
		c.t.Errorf("line (-want +got):\n%s", diff)
	}
}

// closeConnection ends the input and waits for the end.
func (c *pipeClient) hangUp() error {
	c.in.Close()
	return <-c.ended
}

const (
	openLegacy = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}`
	openOld    = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}`
)

func (c *pipeClient) open(d *fakeDeck, request, version string) {
	c.t.Helper()
	c.send(request)
	c.want(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"` + version + `","capabilities":` + d.capabilities +
		`,"serverInfo":` + ourInfo + `}}`)
}

// TestStdio is a conversation in both generations at once.
func TestStdio(t *testing.T) {
	d := newFakeDeck()
	c := dial(t, d)
	for _, tt := range []struct{ send, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Not initialized: send initialize first"}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"result":{}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"server/discover"}`,
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: server/discover"}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{` + meta + `}}`,
			`{"jsonrpc":"2.0","id":4,"result":{"tools":[` + echoTool + `,` + plainTool +
				`],"resultType":"complete","ttlMs":0,"cacheScope":"private",` + ourMeta + `}}`},
		{openLegacy, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":` +
			d.capabilities + `,"serverInfo":` + ourInfo + `}}`},
		{openLegacy, `{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"Already initialized"}}`},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"x":1.0}}}`,
			`{"jsonrpc":"2.0","id":5,"result":{"content":[],"structuredContent":{"x":1.0}}}`},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"echo","arguments":{"x":1.0},` + meta + `}}`,
			`{"jsonrpc":"2.0","id":6,"result":{"content":[],"structuredContent":{"x":1.0},"resultType":"complete",` +
				ourMeta + `}}`},
		{`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This revision has no batches"}}`},
		{`{"jsonrpc":"2.0","id":8`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
		{`7`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: json: want an object at byte 0"}}`},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`},
		{`{"jsonrpc":"2.0","id":true,"method":7}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`},
		{`{"jsonrpc":"2.0","id":11}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`},
		{`{"jsonrpc":"2.0","id":11,"method":7}`,
			`{"jsonrpc":"2.0","id":11,"error":{"code":-32600,"message":"Invalid request: method must be a string"}}`},
		{`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":"x"}`,
			`{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"Invalid request: params must be an object"}}`},
		{`{"jsonrpc":"2.0","id":12,"method":"tools/list","params":[]}`,
			`{"jsonrpc":"2.0","id":12,"error":{"code":-32602,"message":"Invalid params: params must be an object"}}`},
		{`{"jsonrpc":"2.0","id":13,"method":"no/such","params":[]}`,
			`{"jsonrpc":"2.0","id":13,"error":{"code":-32601,"message":"Method not found: no/such"}}`},
		{`{"jsonrpc":"2.0","id":14,"method":"ping","params":null}`, `{"jsonrpc":"2.0","id":14,"result":{}}`},
	} {
		c.send(tt.send)
		c.want(tt.want)
	}
	c.send(`{"jsonrpc":"2.0","id":9,"method":"ping"} {"jsonrpc":"2.0","id":10,"method":"ping"}`)
	c.want(`{"jsonrpc":"2.0","id":9,"result":{}}`)
	c.want(`{"jsonrpc":"2.0","id":10,"result":{}}`)
	if err := c.hangUp(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if diff := cmp.Diff([]string{"end session"}, d.noted()); diff != "" {
		t.Errorf("the deck was told (-want +got):\n%s", diff)
	}
}

func TestStdioBatch(t *testing.T) {
	d := newFakeDeck()
	c := dial(t, d)
	c.open(d, openOld, "2025-03-26")
	c.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	c.want(`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]`)
	c.send(`[{"jsonrpc":"2.0","id":3,"method":[]},{"jsonrpc":"2.0","id":4,"method":"ping","params":7},{"jsonrpc":"2.0","method":"ping","params":7},{"jsonrpc":"2.0","id":5,"method":"ping","params":[]},{"jsonrpc":"2.0","id":{},"method":"ping"}]`)
	c.want(`[{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: method must be a string"}},` +
		`{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"Invalid request: params must be an object"}},` +
		`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Invalid params: params must be an object"}},` +
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}]`)
}

// TestStdioEndsWithAnAnswer: what is still in progress some time after the end of input is answered all the same, but
// for what its caller cancelled.
func TestStdioEndsWithAnAnswer(t *testing.T) {
	for _, stuck := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"echo"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeDeck()
			d.do = func(ctx context.Context, _ drawbridge.Call) (drawbridge.Result, error) {
				<-ctx.Done()
				<-time.After(time.Millisecond) // a client that cancels gets no answer although its call ends late
				return drawbridge.Result{}, ctx.Err()
			}
			c := dial(t, d)
			c.open(d, openOld, "2025-03-26")
			c.send(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"echo"}}`, stuck)
			began := time.Now()
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
			c.in.Close()
			want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The input ended"}}`
			if stuck[0] == '[' {
				want = `[` + want + `,{"jsonrpc":"2.0","id":2,"result":{}}]`
			}
			c.want(want)
			if got := time.Since(began).Truncate(time.Second); got != 5*time.Second {
				t.Errorf("the answer came after %v", got)
			}
			if rest, err := c.lines.Next(); err != io.EOF {
				t.Errorf("then came %s, %v", rest, err)
			}
			if err := <-c.ended; err != nil {
				t.Errorf("the end: %v", err)
			}
			c.stop()
		})
	}
}

// TestStdioCancel: what is cancelled has no answer, in either generation.
func TestStdioCancel(t *testing.T) {
	d := newFakeDeck()
	started := make(chan struct{})
	d.do = func(ctx context.Context, _ drawbridge.Call) (drawbridge.Result, error) {
		started <- struct{}{}
		<-ctx.Done()
		return drawbridge.Result{Raw: json.RawMessage(`{}`)}, nil
	}
	c := dial(t, d)
	c.open(d, openLegacy, "2025-11-25")
	for id, extra := range map[string]string{`1`: ``, `"two"`: `,` + meta} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo"` + extra + `}}`)
		<-started
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list","params":{` + meta + `}}`)
		c.want(`{"jsonrpc":"2.0","id":` + id +
			`,"error":{"code":-32600,"message":"A request of this id is in progress"}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	}
	if err := c.hangUp(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if rest, err := c.lines.Next(); err != io.EOF {
		t.Errorf("after the end: %s, %v", rest, err)
	}
}

// TestStdioAnswersWhatWasPiped: the end of input is not the end of the requests before it.
func TestStdioAnswersWhatWasPiped(t *testing.T) {
	d := newFakeDeck()
	finish := make(chan struct{})
	d.do = func(context.Context, drawbridge.Call) (drawbridge.Result, error) {
		<-finish
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	c := dial(t, d)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` + meta + `}}`)
	c.in.Close()
	close(finish)
	c.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete",` + ourMeta + `}}`)
	if err := <-c.ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestStdioEnds shows the other ends: told to, nobody reads, the input breaks, the server closes.
func TestStdioEnds(t *testing.T) {
	broken := errors.New("broken")
	d := newFakeDeck()
	s := newServer(t, d, Options{})
	t.Run("told to", func(t *testing.T) {
		c := dial(t, d)
		c.open(d, openLegacy, "2025-11-25")
		c.stop()
		if err := <-c.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the end: %v", err)
		}
	})
	t.Run("nobody reads", func(t *testing.T) {
		c := dial(t, d)
		c.out.CloseWithError(broken)
		c.send(openLegacy)
		if err := <-c.ended; !errors.Is(err, broken) {
			t.Errorf("the end: %v", err)
		}
	})
	t.Run("the input breaks", func(t *testing.T) {
		if err := s.ServeStdio(t.Context(), iotest.ErrReader(broken), io.Discard); !errors.Is(err, broken) {
			t.Errorf("the end: %v", err)
		}
	})
	t.Run("the server closes", func(t *testing.T) {
		in, _ := io.Pipe()
		ended := make(chan error)
		go func() { ended <- s.ServeStdio(t.Context(), in, io.Discard) }()
		go s.Close()
		if err := <-ended; err == nil {
			t.Error("the end is no error")
		}
		if err := s.ServeStdio(t.Context(), in, io.Discard); err == nil {
			t.Error("a closed server serves")
		}
	})
}

// TestStdioAsk shows a server asking in the course of a call, and a client that hangs up instead.
func TestStdioAsk(t *testing.T) {
	d := newFakeDeck()
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		raw, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
		return drawbridge.Result{Raw: raw}, err
	}
	c := dial(t, d)
	c.open(d, openLegacy, "2025-11-25")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)
	c.want(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	c.send(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	c.want(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`)
	c.want(`{"jsonrpc":"2.0","id":2,"method":"roots/list"}`)
	c.in.Close()
	c.want(`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"ask the caller: roots/list: the caller is gone"}],` +
		`"isError":true,"_meta":{"drawbridge/fault":{"code":"transient","server":"fake","ambiguous":false}}}}`)
}

// TestStdioEvents shows what a pipe hears outside calls, and a subscription of each kind.
func TestStdioEvents(t *testing.T) {
	d := newFakeDeck()
	c := dial(t, d)
	c.open(d, openLegacy, "2025-11-25")
	d.tell(deck.Event{Kind: deck.ToolsChanged})
	c.want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	c.send(`{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true,"resourceSubscriptions":["test://watched","test://missing","test://watched",1]},` + meta + `}}`)
	const tag = `"_meta":{"io.modelcontextprotocol/subscriptionId":"L"`
	c.want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"promptsListChanged":true,"resourceSubscriptions":["test://watched"]},` + tag + `}}}`)
	d.tell(deck.Event{Kind: deck.ResourceUpdated, URI: watchedURI})
	c.want(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://watched",` + tag +
		`}}}`)
	c.in.Close()
	c.want(`{"jsonrpc":"2.0","id":"L","result":{"resultType":"complete",` + tag +
		`,"io.modelcontextprotocol/serverInfo":` + ourInfo + `}}}`)
	if err := <-c.ended; err != nil {
		t.Errorf("the end: %v", err)
	}
	want := []string{"subscribe test://watched test://missing", "unsubscribe test://watched", "end session"}
	if diff := cmp.Diff(want, d.noted()); diff != "" {
		t.Errorf("the deck was told (-want +got):\n%s", diff)
	}
}

// TestStdioSlowReader: a host that stops reading costs bounded memory, and the call that talks to it does not wait.
func TestStdioSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDeck()
		const many = 5000
		d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
			for range many {
				if err := call.Peer.Notify(ctx, mcp.NoteProgress, json.RawMessage(`{"progressToken":1,"pad":"`+
					strings.Repeat("x", 1000)+`"}`)); err != nil {
					t.Errorf("notify: %v", err)
				}
			}
			return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		}
		c := dial(t, d)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` + meta + `}}`)
		synctest.Wait() // all is said, nothing is read
		heard := 0
		for {
			line, err := c.lines.Next()
			if err != nil {
				t.Fatal(err)
			}
			if rawjson.GetString(line, "method") != mcp.NoteProgress {
				break // the answer is never dropped
			}
			heard++
		}
		if most := (3 << 20) / 1000; heard == 0 || heard > most {
			t.Errorf("%d of %d notifications were kept, want at most %d", heard, many, most)
		}
		if err := c.hangUp(); err != nil {
			t.Errorf("the end: %v", err)
		}
		c.stop()
	})
}

// TestStdioEndsUnread: a host that reads nothing does not keep us from ending.
func TestStdioEndsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDeck()
		large := drawbridge.Result{Raw: json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)}
		d.do = func(context.Context, drawbridge.Call) (drawbridge.Result, error) { return large, nil }
		c := dial(t, d)
		for _, id := range []string{"1", "2", "3", "4"} {
			c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo",` + meta + `}}`)
		}
		synctest.Wait() // one answer is stuck in the pipe, one fills the box, two wait for room
		c.stop()
		if err := <-c.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the end: %v", err)
		}
	})
}

// TestEscapedSlashesOnStdio is a client whose encoder escapes slashes, as PHP's does.
func TestEscapedSlashesOnStdio(t *testing.T) {
	c := dial(t, newFakeDeck())
	c.send(strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain","arguments":{},`+
		meta+`}}`, "/", `\/`))
	c.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{},"resultType":"complete",` + ourMeta +
		`}}`)
	if err := c.hangUp(); err != nil {
		t.Error(err)
	}
}

// TestTooManyRequestsOfOneClient: a pipe takes so many requests at a time, and a session does; one is let in again
// when another has landed.
func TestTooManyRequestsOfOneClient(t *testing.T) {
	d := newFakeDeck()
	release := make(chan struct{})
	d.do = func(ctx context.Context, _ drawbridge.Call) (drawbridge.Result, error) {
		select {
		case <-release:
			return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		case <-ctx.Done():
			return drawbridge.Result{}, ctx.Err()
		}
	}
	c := dial(t, d)
	call := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"plain",%s}}`, id, meta)
	}
	for id := range maxInFlight {
		c.send(call(id))
	}
	c.send(call(maxInFlight))
	c.want(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"Too many requests are in progress"}}`, maxInFlight))
	close(release)
	for range maxInFlight {
		if line, err := c.lines.Next(); err != nil || rawjson.Get(line, "error") != nil {
			t.Fatalf("an answer is %s, %v", line, err)
		}
	}
	c.send(call(0))
	if line, err := c.lines.Next(); err != nil || rawjson.Get(line, "error") != nil {
		t.Errorf("when they are over one is answered %s, %v", line, err)
	}

	var s session
	for id := range maxInFlight {
		if _, cancel, refusal := s.beginRequest(t.Context(), json.RawMessage(strconv.Itoa(id))); refusal.isNone() {
			defer cancel(nil)
		} else {
			t.Fatalf("request %d of a session is refused", id)
		}
	}
	if _, _, refusal := s.beginRequest(t.Context(), json.RawMessage("-1")); rawjson.GetString(refusal.fault,
		"message") != "Too many requests are in progress" {
		t.Errorf("one too many of a session is refused so: %s", refusal.fault)
	}
	s.endRequest(json.RawMessage("0"), func(error) {})
	if _, cancel, refusal := s.beginRequest(t.Context(), json.RawMessage("-1")); refusal.isNone() {
		cancel(nil)
	} else {
		t.Errorf("when one has landed: %s", refusal.fault)
	}
}
