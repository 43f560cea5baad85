package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	protocol "github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkDeck is a fake whose tool says how it gets on, and asks a question where it can.
func sdkDeck() *fakeDeck {
	d := newFakeDeck()
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		switch call.Method {
		case protocol.MethodPromptsGet:
			return drawbridge.Result{Raw: json.RawMessage(
				`{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`)}, nil
		case protocol.MethodResourcesRead:
			return drawbridge.Result{Raw: json.RawMessage(`{"contents":[{"uri":"test://watched","text":"x"}]}`)}, nil
		case protocol.MethodComplete:
			return drawbridge.Result{Raw: json.RawMessage(`{"completion":{"values":["one"]}}`)}, nil
		}
		token := rawjson.Get(call.Params, "_meta", protocol.MetaProgressToken)
		note := rawjson.Apply(json.RawMessage(`{"progress":1,"message":"half"}`), rawjson.Put(token, "progressToken"))
		if err := call.Peer.Notify(ctx, protocol.NoteProgress, note); err != nil {
			return drawbridge.Result{}, err
		}
		said := json.RawMessage(`"nobody to ask"`)
		if got, err := call.Peer.Request(ctx, protocol.MethodElicitation,
			json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)); err == nil {
			said = rawjson.Get(got, "action")
		}
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":` + string(said) + `}]}`)}, nil
	}
	return d
}

// TestWithTheSDK has the official client talk to the server, in both generations, over both doors.
func TestWithTheSDK(t *testing.T) {
	overHTTP := func(t *testing.T, d Deck) mcp.Transport {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		t.Cleanup(transport.CloseIdleConnections)
		return &mcp.StreamableClientTransport{Endpoint: serveHTTP(t, d, Options{}),
			HTTPClient: &http.Client{Transport: transport}}
	}
	overStdio := func(t *testing.T, d Deck) mcp.Transport {
		c := dial(t, d)
		return &mcp.IOTransport{Reader: c.out, Writer: c.in}
	}
	for _, tt := range []struct {
		name, version string
		transport     func(*testing.T, Deck) mcp.Transport
		answer        string
	}{
		{"modern over HTTP", "2026-07-28", overHTTP, "nobody to ask"},
		{"modern over stdio", "2026-07-28", overStdio, "nobody to ask"},
		{"2025-11-25 over HTTP", "2025-11-25", overHTTP, "accept"},
		{"2025-11-25 over stdio", "2025-11-25", overStdio, "accept"},
		{"2025-03-26 over HTTP", "2025-03-26", overHTTP, "accept"},
		{"2024-11-05 over stdio", "2024-11-05", overStdio, "accept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := sdkDeck()
			c := newSDKClient()
			session, err := c.Connect(t.Context(), tt.transport(t, d),
				&mcp.ClientSessionOptions{ProtocolVersion: tt.version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult().ProtocolVersion; got != tt.version {
				t.Errorf("they agreed on %s", got)
			}
			c.play(t, d, session, tt.answer)
			if err := session.Close(); err != nil && err != io.ErrClosedPipe {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// An sdkClient is the official client with ears.
type sdkClient struct {
	*mcp.Client
	progress, changed, updated chan string
}

func newSDKClient() *sdkClient {
	c := &sdkClient{progress: make(chan string, 1), changed: make(chan string, 1), updated: make(chan string, 1)}
	hear := func(ear chan string, what string) {
		select {
		case ear <- what:
		default: // once is enough
		}
	}
	c.Client = mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			hear(c.progress, r.Params.Message)
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { hear(c.changed, "tools") },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			hear(c.updated,
				r.Params.URI)
		},
	})
	return c
}

// play has the client use everything once.
func (c *sdkClient) play(t *testing.T, d *fakeDeck, session *mcp.ClientSession, answer string) {
	ctx := t.Context()
	tools, err := session.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 2 {
		t.Fatalf("tools: %v, %v", tools, err)
	}
	params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"region": "Zürich"}}
	params.SetProgressToken("p")
	result, err := session.CallTool(ctx, params)
	if err != nil {
		t.Fatalf("call: %v", err)
	}
	if got := result.Content[0].(*mcp.TextContent).Text; got != answer {
		t.Errorf("the tool heard %q, want %q", got, answer)
	}
	if got := <-c.progress; got != "half" {
		t.Errorf("progress %q", got)
	}
	if got, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"}); err != nil || len(got.Messages) != 1 {
		t.Errorf("prompt: %v, %v", got, err)
	}
	if got, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: watchedURI}); err != nil ||
		len(got.Contents) != 1 {
		t.Errorf("resource: %v, %v", got, err)
	}
	completed, err := session.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt",
		Name: "greet"}})
	if err != nil || cmp.Diff([]string{"one"}, completed.Completion.Values) != "" {
		t.Errorf("completion: %v, %v", completed, err)
	}
	if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: watchedURI}); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	// Its stream may not be open yet; what is said again is told once.
	hear(t, c.updated, watchedURI, func() { d.tell(deck.Event{Kind: deck.ResourceUpdated, URI: watchedURI}) })
	hear(t, c.changed, "tools", func() { d.tell(deck.Event{Kind: deck.ToolsChanged}) })
}

// hear says something until it is heard: nobody is told when a client of a stateless revision has begun to listen.
func hear(t *testing.T, heard <-chan string, want string, say func()) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for range 500 {
		say()
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
			return
		case <-again.C:
		}
	}
	t.Fatalf("nobody heard %q", want)
}
