package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A peer is the server's end of a Stream's pipes, played by the test.
type peer struct {
	t   testing.TB
	in  *mcp.LineReader
	r   *io.PipeReader // what in reads from
	out *io.PipeWriter
}

// connect makes a Stream on two pipes. Both ends are closed with the test.
func connect(t testing.TB, o transport.StreamConnOptions) (*transport.StreamConn, *peer) {
	toServer, w := io.Pipe()
	r, fromServer := io.Pipe()
	lines := mcp.NewLineReader(r, 1<<20)
	o.Receive = lines.Next
	o.Send = func(_ context.Context, msg []byte) error {
		_, err := w.Write(msg)
		return err
	}
	o.Close = func(context.Context) error {
		_ = r.Close()
		return w.Close()
	}
	s := transport.NewStreamConn(t.Context(), o)
	p := &peer{t, mcp.NewLineReader(toServer, 0), toServer, fromServer}
	t.Cleanup(func() {
		_ = p.r.Close()
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s, p
}

// read gives the next message that the Stream sent.
func (p *peer) read() mcp.Message {
	p.t.Helper()
	line, err := p.in.Next()
	if err != nil {
		p.t.Fatalf("the server reads: %v", err)
	}
	m, err := mcp.ParseMessage(line)
	if err != nil {
		p.t.Fatalf("the server reads %s: %v", line, err)
	}
	return m
}

// write writes a line; $ stands for id.
func (p *peer) write(id json.RawMessage, line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.out, strings.ReplaceAll(line, "$", string(id))+"\n"); err != nil {
		p.t.Errorf("the server writes: %v", err)
	}
}

// A heard is a Handler that keeps what it hears, and answers with what it was given.
type heard struct {
	mu     sync.Mutex
	notes  []string
	asks   []string
	answer func(ctx context.Context) (result, errorObject json.RawMessage)
}

func (h *heard) HandleNotification(method string, params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, method+" "+string(params))
}

func (h *heard) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	h.mu.Lock()
	h.asks = append(h.asks, method+" "+string(params))
	h.mu.Unlock()
	return h.answer(ctx)
}

func (h *heard) noted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.notes...)
}

// A reply is what a Do came back with.
type reply struct {
	Result, Error string
	Err           error
}

// start calls Do from a goroutine.
func start(ctx context.Context, s *transport.StreamConn, method, params string, in transport.Handler) <-chan reply {
	c := make(chan reply, 1)
	go func() {
		m, err := s.Call(ctx, method, json.RawMessage(params), in)
		c <- reply{string(m.Result), string(m.Error), err}
	}()
	return c
}

func TestStreamDo(t *testing.T) {
	s, p := connect(t, transport.StreamConnOptions{})
	got := start(t.Context(), s, "tools/call", `{"name":"add","_meta":{"progressToken":"theirs","x":1}}`, nil)
	req := p.read()
	want := mcp.Message{
		ID:     json.RawMessage("1"),
		Method: "tools/call",
		Params: json.RawMessage(`{"name":"add","_meta":{"progressToken":1,"x":1}}`),
	}
	if diff := cmp.Diff(want, req); diff != "" {
		t.Errorf("request: %s", diff)
	}
	p.write(req.ID, `{"jsonrpc":"2.0","id":$,"result":{"big":12345678901234567890,"s":""}}`)
	if r := <-got; r != (reply{Result: `{"big":12345678901234567890,"s":""}`}) {
		t.Errorf("got %+v", r)
	}
	got = start(t.Context(), s, "initialize", `{"protocolVersion":"2025-11-25"}`, nil)
	if req = p.read(); string(req.Params) != `{"protocolVersion":"2025-11-25"}` {
		t.Errorf("params of initialize: %s", req.Params)
	}
	p.write(req.ID, `{"jsonrpc":"2.0","id":$,"error":{"code":-32603,"message":"no"}}`)
	if r := <-got; r != (reply{Error: `{"code":-32603,"message":"no"}`}) {
		t.Errorf("got %+v", r)
	}
}

// TestStreamIsLenient has what servers were seen to write around an answer. In each case the call ends well, and so
// does the next one.
func TestStreamIsLenient(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":$,"result":{}}`
	for _, tt := range []struct {
		name, says string
		junk       int
	}{
		{"plain", answer, 0},
		{"a log line first", "server listening on stdio\n" + answer, 1},
		{"a log line that begins like JSON", "2026-01-01 12:00 start\n" + answer, 1},
		{"a JSON log line", `{"level":"info","msg":"hi"}` + "\n" + answer, 1},
		{"a byte order mark", "\xef\xbb\xbf" + answer, 0},
		{"CRLF", answer + "\r", 0},
		{"blank lines", "\n \n" + answer + "\n\n", 0},
		{"two messages on a line", `{"jsonrpc":"2.0","method":"notifications/x"}` + answer, 0},
		{"a message and rubbish on a line", answer + " done.", 1},
		{"a batch", `[{"jsonrpc":"2.0","method":"notifications/x"},` + answer + `]`, 0},
		{"a batch with rubbish in it", `[7,` + answer + `]`, 1},
		{"no jsonrpc", `{"id":$,"result":{}}`, 0},
		{"result and an error of null", `{"jsonrpc":"2.0","id":$,"result":{},"error":null}`, 0},
		{"an id as a string", `{"jsonrpc":"2.0","id":"$","result":{}}`, 0},
		{"an id as a fraction", `{"jsonrpc":"2.0","id":$.0,"result":{}}`, 0},
		{"answers to nothing", `{"jsonrpc":"2.0","id":99,"result":{}}` + "\n" +
			`{"jsonrpc":"2.0","id":"x","result":{}}` + "\n" + answer, 0},
		{"an answer to a notification", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":""}}` +
			"\n" + answer, 0},
		{"two answers", answer + "\n" + answer, 0},
		{"a long log line", strings.Repeat("x", 100_000) + "\n" + answer, 1},
		{"a line over the bound", `{"id":98,"result":"` + strings.Repeat("x", 1<<20) + "\"}\n", 1},
		{"invalid UTF-8 in another answer", "{\"id\":99,\"result\":\"\xff\"}\n" + answer, 1},
		{"invalid UTF-8 in a notification", "{\"method\":\"a\",\"id\":$,\"params\":\"\xff\"}\n" + answer, 1},
		{"garbled: invalid UTF-8", "{\"id\":$,\"result\":\"\xff\"}\n", 1},
		{"garbled: cut off", `{"jsonrpc":"2.0","id":$,"result":{"content":[` + "\n", 1},
		{"garbled: nested too deep", `{"jsonrpc":"2.0","id":$,"result":` + strings.Repeat("[", 1000) +
			strings.Repeat("]", 1000) + "}\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			junk := 0
			s, p := connect(t, transport.StreamConnOptions{OnJunk: func([]byte) { junk++ }})
			got := start(t.Context(), s, "tools/list", "", nil)
			req := p.read()
			p.write(req.ID, tt.says)
			r := <-got
			switch {
			case strings.Contains(tt.name, "bound"):
				if !errors.Is(r.Err, mcp.ErrTooLong) || !errors.Is(r.Err, transport.ErrLost) {
					t.Errorf("got %+v, want ErrTooLong", r)
				}
			case strings.Contains(tt.name, "garbled"):
				if _, ok := errors.AsType[*rawjson.SyntaxError](r.Err); !ok || !errors.Is(r.Err, transport.ErrLost) {
					t.Errorf("got %+v, want a syntax error", r)
				}
			case r != reply{Result: "{}"}:
				t.Errorf("got %+v", r)
			}
			got = start(t.Context(), s, "ping", "{}", nil)
			p.write(p.read().ID, `{"jsonrpc":"2.0","id":$,"result":{"second":true}}`)
			if r := <-got; r != (reply{Result: `{"second":true}`}) {
				t.Errorf("the next call: got %+v", r)
			}
			if junk != tt.junk {
				t.Errorf("junk = %d, want %d", junk, tt.junk)
			}
		})
	}
}

func TestStreamErrorWithoutID(t *testing.T) {
	s, p := connect(t, transport.StreamConnOptions{})
	got := start(t.Context(), s, "server/discover", "", nil)
	p.read()
	p.write(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}`)
	if r := <-got; r != (reply{Error: `{"code":-32600,"message":"what?"}`}) {
		t.Errorf("got %+v", r)
	}
}

// TestStreamConcurrent has many calls at once, answered in the opposite order.
func TestStreamConcurrent(t *testing.T) {
	s, p := connect(t, transport.StreamConnOptions{})
	const n = 50
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() {
			params := fmt.Sprintf(`{"n":%d}`, i)
			m, err := s.Call(t.Context(), "echo", json.RawMessage(params), nil)
			if got := string(rawjson.Get(m.Result, "n")); err != nil || got != fmt.Sprint(i) {
				t.Errorf("call %d: %s, %v", i, m.Result, err)
			}
		})
	}
	requests := make([]mcp.Message, n)
	for i := range requests {
		requests[i] = p.read()
	}
	for i := range requests {
		req := requests[n-1-i]
		p.write(req.ID, `{"jsonrpc":"2.0","id":$,"result":`+string(req.Params)+`}`)
	}
	work.Wait()
}

func TestStreamCancel(t *testing.T) {
	for _, tt := range []struct {
		method string
		cancel func(context.Context) (context.Context, context.CancelFunc)
		want   error
		note   string
	}{
		{"tools/call", context.WithCancel, context.Canceled, `{"requestId":1,"reason":"cancelled"}`},
		{"tools/call", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, context.DeadlineExceeded, `{"requestId":1,"reason":"timeout"}`},
		{"initialize", context.WithCancel, context.Canceled, ""},
		{"server/discover", context.WithCancel, context.Canceled, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, p := connect(t, transport.StreamConnOptions{})
			ctx, cancel := tt.cancel(t.Context())
			got := start(ctx, s, tt.method, "{}", nil)
			p.read()
			synctest.Wait()
			if tt.want == context.Canceled {
				cancel()
			}
			if r := <-got; r.Err != tt.want {
				t.Errorf("%s: got %v, want %v", tt.method, r.Err, tt.want)
			}
			cancel()
			if tt.note != "" {
				if m := p.read(); m.Method != mcp.NoteCancelled || string(m.Params) != tt.note {
					t.Errorf("the server was told %+v", m)
				}
			}
			// A late answer is nobody's, not even that of the next call.
			got = start(t.Context(), s, "ping", "{}", nil)
			req := p.read()
			p.write(nil, `{"jsonrpc":"2.0","id":1,"result":{"late":true}}`)
			p.write(req.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
			if r := <-got; r != (reply{Result: "{}"}) {
				t.Errorf("the next call: %+v", r)
			}
		})
	}
}

// TestStreamServerDoesNotRead has a server that leaves its input unread: a Do ends with its context all the same, what
// was not sent is never sent, and what was half sent is finished first.
func TestStreamServerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := connect(t, transport.StreamConnOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var calls []<-chan reply
		for range 40 {
			calls = append(calls, start(ctx, s, "tools/call", "{}", nil))
		}
		synctest.Wait()
		cancel()
		for _, c := range calls {
			if r := <-c; r.Err != context.Canceled {
				t.Errorf("got %v", r.Err)
			}
		}
		if m := p.read(); m.Method != "tools/call" {
			t.Errorf("the server read %+v first", m)
		}
		if m := p.read(); m.Method != mcp.NoteCancelled {
			t.Errorf("the server read %+v then", m)
		}
		got := start(t.Context(), s, "ping", "{}", nil)
		req := p.read()
		p.write(req.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
		if r := <-got; req.Method != "ping" || r.Err != nil {
			t.Errorf("the server read %+v at last, and the call got %+v", req, r)
		}
	})
}

// TestStreamAtOnce has messages go out without the writer where there is room for them, none of them before one that
// waits, and a call that went out so be cancelled like any other.
func TestStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var direct []string
		able := true
		s, p := connect(t, transport.StreamConnOptions{TrySend: func(msg []byte) bool {
			if able {
				direct = append(direct, rawjson.GetString(msg, "method"))
			}
			return able
		}})
		ctx, cancel := context.WithCancel(t.Context())
		first := start(ctx, s, "first", "{}", nil)
		synctest.Wait()
		able = false
		second := start(t.Context(), s, "second", "{}", nil) // it waits: nobody reads
		synctest.Wait()
		able = true
		third := start(t.Context(), s, "third", "{}", nil)
		synctest.Wait()
		cancel()
		if r := <-first; r.Err != context.Canceled {
			t.Errorf("the first got %v", r.Err)
		}
		for _, want := range []string{"second", mcp.NoteCancelled, "third"} {
			if m := p.read(); m.Method != want {
				t.Errorf("the server read %s, want %s", m.Method, want)
			} else if m.ID != nil {
				p.write(m.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
			}
		}
		for _, c := range []<-chan reply{second, third} {
			if r := <-c; r.Err != nil {
				t.Error(r.Err)
			}
		}
		synctest.Wait()
		if err := s.Notify(t.Context(), "fourth", nil); err != nil || strings.Join(direct, " ") != "first fourth" {
			t.Errorf("%v went out at once, %v", direct, err)
		}
	})
}

// TestStreamNudge has requests that nobody waits for: one at a time, which nothing waits for, and which nothing that
// the server says belongs to.
func TestStreamNudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := connect(t, transport.StreamConnOptions{})
		h := &heard{}
		got := start(t.Context(), s, "tools/call", "{}", h)
		call := p.read()
		s.SendWakeup("ping", nil)
		s.SendWakeup("ping", nil)
		nudge := p.read()
		if diff := cmp.Diff(mcp.Message{ID: json.RawMessage("2"), Method: "ping"}, nudge); diff != "" {
			t.Error(diff)
		}
		p.write(nil, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		p.write(nudge.ID, `{"jsonrpc":"2.0","id":$,"error":{"code":-32601,"message":"no ping"}}`)
		p.write(call.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
		if r := <-got; r != (reply{Result: "{}"}) {
			t.Errorf("the call: %+v", r)
		}
		if len(h.noted()) != 1 {
			t.Errorf("the call heard %v", h.noted())
		}
		s.SendWakeup("server/discover", json.RawMessage(`{"_meta":{}}`)) // the server does not read it yet
		synctest.Wait()
		if m := p.read(); m.Method != "server/discover" {
			t.Errorf("the next nudge: %+v", m)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		s.SendWakeup("ping", nil)
	})
}

// TestStreamParallel has a Send of its own for each request: one that hangs keeps nobody else, and a refused message
// ends its request alone.
func TestStreamParallel(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sent := make(chan []byte, 10)
			closed := make(chan struct{})
			s := transport.NewStreamConn(t.Context(), transport.StreamConnOptions{
				ParallelSend: parallel,
				Send: func(ctx context.Context, msg []byte) error {
					m, _ := mcp.ParseMessage(msg)
					switch m.Method {
					case "refused":
						return fmt.Errorf("status 400: %w", transport.ErrRefused)
					case "hangs":
						<-ctx.Done()
						return ctx.Err()
					}
					sent <- msg
					return nil
				},
				Receive: func() ([]byte, error) { <-closed; return nil, io.EOF },
				Close:   func(context.Context) error { close(closed); return nil },
			})
			if r := <-start(t.Context(), s, "refused", "{}", nil); !errors.Is(r.Err, transport.ErrRefused) {
				t.Errorf("refused: %v", r.Err)
			}
			if err := s.Err(); err != nil {
				t.Fatalf("the connection has ended: %v", err)
			}
			if parallel {
				ctx, cancel := context.WithCancel(t.Context())
				hangs := start(ctx, s, "hangs", "{}", nil)
				synctest.Wait()
				if err := s.Notify(t.Context(), "notifications/x", nil); err != nil {
					t.Error(err)
				}
				<-sent
				cancel()
				if r := <-hangs; r.Err != context.Canceled {
					t.Errorf("hangs: %v", r.Err)
				}
				if m, _ := mcp.ParseMessage(<-sent); m.Method != mcp.NoteCancelled {
					t.Errorf("the server got %+v", m)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzStream has a server that answers with anything: the call ends when the server does, and nothing is left behind.
// It is row FZ-3.
func FuzzStream(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	f.Add(`{"id":"1","error":{}} {"id":1.0,"result":null}` + "\n[{\"method\":\"x\",\"id\":null}]\nrubbish")
	f.Add(`{"method":"notifications/cancelled","params":{"requestId":1}}{"method":"a","id":1}`)
	f.Add(`{"method":"notifications/progress","params":{"progressToken":1}}`)
	f.Fuzz(func(t *testing.T, says string) {
		h := &heard{answer: func(context.Context) (result, errorObject json.RawMessage) {
			return json.RawMessage("{}"),
				nil
		}}
		s, p := connect(t, transport.StreamConnOptions{Handler: h, MaxServerRequests: 2, OnJunk: func([]byte) {}})
		got := start(t.Context(), s, "tools/call", "{}", h)
		p.read()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, p.r)
		}()
		_, _ = io.WriteString(p.out, says)
		_ = p.out.Close()
		if r := <-got; r.Err != nil && !errors.Is(r.Err, transport.ErrLost) {
			t.Errorf("got %v", r.Err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-drained
	})
}

// BenchmarkStreamDo is a small call; the server's half, a parse and a write, is in the numbers.
func BenchmarkStreamDo(b *testing.B) {
	s, p := connect(b, transport.StreamConnOptions{})
	var server sync.WaitGroup
	server.Go(func() {
		var buf []byte
		for {
			line, err := p.in.Next()
			if err != nil {
				return
			}
			m, _ := mcp.ParseMessage(line)
			m = mcp.Message{ID: m.ID, Result: json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)}
			buf = append(m.Append(buf[:0]), '\n')
			if _, err := p.out.Write(buf); err != nil {
				return
			}
		}
	})
	params := json.RawMessage(
		`{"name":"echo","arguments":{"text":"0123456789012345678901234567890123456789"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Call(b.Context(), "tools/call", params, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	_ = p.r.Close()
	server.Wait()
}
