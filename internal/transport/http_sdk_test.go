package transport_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

type empty struct{}

// sdkServer has a tool for each thing that can happen in a call. Cancelled gets a word when a call of wait ends early.
func sdkServer(cancelled chan<- string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Text string }) (
		*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, r *mcp.CallToolRequest,
		_ empty) (*mcp.CallToolResult, any, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
			Progress: 1})
		return text("done"), nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest,
		_ empty) (*mcp.CallToolResult, any, error) {
		res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "may I?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		if err != nil {
			return nil, nil, err
		}
		return text(res.Action), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest,
		_ empty) (*mcp.CallToolResult, any, error) {
		cancelled <- "started"
		<-ctx.Done()
		cancelled <- "cancelled"
		return nil, nil, ctx.Err()
	})
	return s
}

// A sdkPeer is one way to serve the SDK's server.
type sdkPeer struct {
	name   string
	modern bool
	serve  func(*mcp.Server) http.Handler
	dial   func(t *testing.T, o transport.HTTPOptions) transport.Conn
}

func streamable(o mcp.StreamableHTTPOptions) func(*mcp.Server) http.Handler {
	return func(s *mcp.Server) http.Handler {
		o.PropagateRequestCancellation = true
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &o)
	}
}

func peers() []sdkPeer {
	dialHTTP := func(t *testing.T, o transport.HTTPOptions) transport.Conn { return dial(t, o) }
	return []sdkPeer{
		{"legacy with streams", false, streamable(mcp.StreamableHTTPOptions{}), dialHTTP},
		{"legacy resumable", false, streamable(mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}),
			dialHTTP},
		{"legacy with JSON", false, streamable(mcp.StreamableHTTPOptions{JSONResponse: true}), dialHTTP},
		{"modern with streams", true, streamable(mcp.StreamableHTTPOptions{Stateless: true}), dialHTTP},
		{"modern with JSON", true, streamable(mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
			dialHTTP},
		{"HTTP+SSE", false, func(s *mcp.Server) http.Handler {
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		}, dialSSE},
	}
}

func dialSSE(t *testing.T, o transport.HTTPOptions) transport.Conn {
	t.Helper()
	c, err := transport.DialSSE(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// params makes the params of a call, for the peer's generation.
func (p sdkPeer) params(tool, arguments string) json.RawMessage {
	s := `{"name":"` + tool + `","arguments":` + arguments
	if p.modern {
		s += `,` + modern
	}
	return json.RawMessage(s + `}`)
}

// TestPeers runs one conversation with the SDK's server over every transport.
func TestPeers(t *testing.T) { overBoth(t, testPeers) }

func testPeers(t *testing.T) {
	for _, p := range peers() {
		t.Run(p.name, func(t *testing.T) {
			states := make(chan string, 2)
			sdk := sdkServer(states)
			server := httptest.NewServer(p.serve(sdk))
			t.Cleanup(server.Close)
			rest := &httpHeard{notify: make(chan string, 10)}
			c := p.dial(t, transport.HTTPOptions{URL: server.URL, Handler: rest})
			if !p.modern {
				greet(t, c)
			}
			call := func(tool, arguments, want string, in transport.Handler) {
				t.Helper()
				m, err := c.Call(t.Context(), protocol.MethodToolsCall, p.params(tool, arguments), in)
				if err != nil {
					t.Fatalf("%s: %v", tool, err)
				}
				var got struct{ Content []struct{ Text string } }
				if err := json.Unmarshal(m.Result, &got); err != nil || len(got.Content) != 1 ||
					got.Content[0].Text != want {
					t.Errorf("%s: %s, want %q", tool, str(m), want)
				}
			}
			call("echo", `{"Text":"hello"}`, "hello", nil)

			in := &httpHeard{answer: `{"action":"accept","content":{}}`}
			jsonOnly := p.name == "legacy with JSON" || p.name == "modern with JSON"
			if !jsonOnly {
				call("work", `{}`, "done", in)
				if notes, _ := in.take(); !slices.Equal(notes, []string{protocol.NoteProgress}) {
					t.Errorf("heard %q in the course of the call", notes)
				}
			}
			if !p.modern && !jsonOnly {
				call("ask", `{}`, "accept", in)
				if _, asks := in.take(); !slices.Equal(asks, []string{protocol.MethodElicitation}) {
					t.Errorf("asked %q in the course of the call", asks)
				}
			}
			cancelCall(t, c, p, states)
			if !p.modern {
				mcp.AddTool(sdk, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest,
					empty) (*mcp.CallToolResult, any, error) {
					return nil, nil, nil
				})
				if note := <-rest.notify; note != protocol.NoteToolsChanged {
					t.Errorf("heard %q", note)
				}
			}
			m, err := c.Call(t.Context(), protocol.MethodToolsCall, p.params("echo", `7`), nil)
			if err != nil || m.Error == nil && m.Result == nil {
				t.Errorf("wrong arguments: %s, %v", str(m), err)
			}
		})
	}
}

// cancelCall ends the context of a call and waits until the server has noticed.
func cancelCall(t *testing.T, c transport.Conn, p sdkPeer, states <-chan string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.Call(ctx, protocol.MethodToolsCall, p.params("wait", `{}`), nil)
		ended <- err
	}()
	seen := []string{<-states}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	seen = append(seen, <-states)
	if diff := cmp.Diff([]string{"started", "cancelled"}, seen); diff != "" {
		t.Error(diff)
	}
}

// TestPeerListen has a modern subscription: it is a request that stays open, beside which others go on.
func TestPeerListen(t *testing.T) { overBoth(t, testPeerListen) }

func testPeerListen(t *testing.T) {
	sdk := sdkServer(nil)
	server := httptest.NewServer(streamable(mcp.StreamableHTTPOptions{Stateless: true})(sdk))
	t.Cleanup(server.Close)
	c := dial(t, transport.HTTPOptions{URL: server.URL})
	in := &httpHeard{notify: make(chan string, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		params := json.RawMessage(`{"notifications":{"toolsListChanged":true},` + modern + `}`)
		_, err := c.Call(ctx, protocol.MethodListen, params, in)
		ended <- err
	}()
	if note := <-in.notify; note != protocol.NoteListenAck {
		t.Errorf("heard %q first", note)
	}
	mcp.AddTool(sdk, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest,
		empty) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	if note := <-in.notify; note != protocol.NoteToolsChanged {
		t.Errorf("heard %q then", note)
	}
	if m, err := c.Call(t.Context(), protocol.MethodToolsList, json.RawMessage(`{`+modern+`}`), nil); err != nil ||
		m.Result == nil {
		t.Errorf("beside it: %s, %v", str(m), err)
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("ended with %v", err)
	}
}
