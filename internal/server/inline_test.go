package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A pipeServer is an MCP server on pipes that the test plays, behind a deck that sends each call to it.
type pipeServer struct {
	t     *testing.T
	conn  *transport.StreamConn
	lines *mcp.LineReader
	out   *io.PipeWriter
	// after runs in a call when its response has arrived; nil for nothing.
	after func(call drawbridge.Call)
}

// A peerHandler is the handler of a request with the Parker of its call, as in package upstream.
type peerHandler struct{ peer drawbridge.Peer }

func (peerHandler) HandleNotification(string, json.RawMessage) {}

func (peerHandler) HandleRequest(context.Context, string, json.RawMessage) (result, errorObject json.RawMessage) {
	return json.RawMessage(`{}`), nil
}

func (h peerHandler) Parker() transport.Parker {
	return h.peer.(interface{ Parker() transport.Parker }).Parker()
}

// newPipeServer returns a server, and a client of a deck that calls it.
func newPipeServer(t *testing.T) (*pipeServer, *pipeClient) {
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	lines := mcp.NewLineReader(out, 0)
	s := &pipeServer{t: t, lines: mcp.NewLineReader(toServer, 0), out: fromServer}
	s.conn = transport.NewStreamConn(t.Context(), transport.StreamConnOptions{
		Send: func(_ context.Context, message []byte) error {
			_, err := in.Write(message)
			return err
		},
		Receive:      lines.Next,
		MoreReceived: lines.HasMore,
		Close: func(context.Context) error {
			_, _ = in.Close(), out.Close()
			return nil
		},
	})
	d := newFakeDeck()
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		m, err := s.conn.Call(ctx, call.Method, call.Params, peerHandler{call.Peer})
		if s.after != nil {
			s.after(call)
		}
		if err != nil {
			return drawbridge.Result{}, err
		}
		return drawbridge.Result{Raw: m.Result}, nil
	}
	c := dial(t, d)
	t.Cleanup(func() {
		c.stop()
		_ = toServer.Close()
		if err := s.conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.send(helloLine)
	if _, err := c.lines.Next(); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// read returns the next message that the server receives.
func (s *pipeServer) read() mcp.Message {
	s.t.Helper()
	line, err := s.lines.Next()
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := mcp.ParseMessage(line)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// answer responds to a request with its argument n.
func (s *pipeServer) answer(m mcp.Message) {
	s.t.Helper()
	_, err := fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%s,"result":{"n":%s}}`+"\n", m.ID,
		rawjson.Get(m.Params, "arguments", "n"))
	if err != nil {
		s.t.Fatal(err)
	}
}

const helloLine = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

func callLine(id, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"n":%d}}}`, id, n)
}

func answerLine(id, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"n":%d}}`, id, n)
}

func pingLine(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) }

func pongLine(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }

func TestCallsRunInline(t *testing.T) {
	synctest.Test(t, callsRunInline) // in real time, a busy machine could take the turn from the reading goroutine
}

func callsRunInline(t *testing.T) {
	s, c := newPipeServer(t)
	var ways []string
	s.after = func(call drawbridge.Call) {
		way := "in a worker"
		if call.Peer.(*requestPeer).Parker() != nil {
			way = "inline"
		}
		ways = append(ways, way)
	}
	for i := range 100 {
		c.send(callLine(i, i))
		s.answer(s.read())
		c.want(answerLine(i, i))
	}
	// Of two calls at once, only the first one is inline.
	c.send(callLine(200, 1))
	first := s.read()
	c.send(callLine(201, 2))
	s.answer(s.read())
	c.want(answerLine(201, 2))
	s.answer(first)
	c.want(answerLine(200, 1))
	// A large call is not inline.
	large := strings.Repeat(" ", maxInlineRequest)
	c.send(strings.Replace(callLine(300, 3), `"n"`, large+`"n"`, 1))
	s.answer(s.read())
	c.want(answerLine(300, 3))
	want := append(repeat("inline", 100), "in a worker", "inline", "in a worker")
	if got := strings.Join(ways, ","); got != strings.Join(want, ",") {
		t.Errorf("the calls ran %s", got)
	}
}

func repeat(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}

func TestOtherMessagesDuringAnInlineCall(t *testing.T) {
	s, c := newPipeServer(t)
	c.send(callLine(1, 1))
	m := s.read()
	c.send(pingLine(2))
	c.want(pongLine(2))
	c.send(callLine(3, 3))
	other := s.read()
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`)
	if note := s.read(); note.Method != mcp.NoteCancelled || string(rawjson.Get(note.Params, "requestId")) != string(m.ID) {
		t.Errorf("the server got %s %s", note.Method, note.Params)
	}
	s.answer(m) // late: it is dropped
	s.answer(other)
	c.want(answerLine(3, 3))
}

// TestBlockedInlineCall holds that a call which blocks delays no other message for long: neither the client's lines
// before the call was sent, nor the server's responses afterwards.
func TestBlockedInlineCall(t *testing.T) {
	s, c := newPipeServer(t)
	goOn, blocked := make(chan struct{}), make(chan struct{})
	s.after = func(call drawbridge.Call) {
		if string(rawjson.Get(call.Params, "arguments", "n")) == "1" {
			close(blocked)
			<-goOn
		}
	}
	c.send(callLine(1, 1))
	s.answer(s.read())
	<-blocked // in the goroutine that reads the server's responses
	c.send(pingLine(2))
	c.want(pongLine(2))
	c.send(callLine(3, 3))
	s.answer(s.read())
	c.want(answerLine(3, 3))
	close(goOn)
	c.want(answerLine(1, 1))
	c.send(callLine(4, 4))
	s.answer(s.read())
	c.want(answerLine(4, 4))
}

func TestCallThatBlocksTheReader(t *testing.T) {
	d := newFakeDeck()
	goOn := make(chan struct{})
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return drawbridge.Result{Raw: rawjson.Get(call.Params, "arguments")}, nil
	}
	c := dial(t, d)
	c.send(helloLine)
	_, _ = c.lines.Next()
	c.send(callLine(1, 1), pingLine(2))
	c.want(pongLine(2))
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, callLine(3, 3), pingLine(4))
	c.want(pongLine(4))
	close(goOn)
	c.want(answerLine(3, 3))
	if err := c.hangUp(); err != nil {
		t.Errorf("ServeStdio returned %v", err)
	}
}

func TestInlineCallWhenItsServerIsGone(t *testing.T) {
	s, c := newPipeServer(t)
	c.send(callLine(1, 1))
	s.read()
	_ = s.out.Close()
	line, err := c.lines.Next()
	if err != nil || rawjson.Get(line, "error") == nil && !strings.Contains(string(line), `"isError":true`) {
		t.Errorf("the client got %s, %v", line, err)
	}
}

func TestInlineCallWhenTheClientHangsUp(t *testing.T) {
	s, c := newPipeServer(t)
	c.send(callLine(1, 1))
	m := s.read()
	go func() { _ = c.in.Close() }()
	s.answer(m)
	c.want(answerLine(1, 1))
	if err := <-c.ended; err != nil {
		t.Errorf("ServeStdio returned %v", err)
	}
}
