//go:build !nomcp

//lint:file-ignore SA1019 roots are deprecated since 2026-07-28 and carried all the same: clients of other revisions have them

package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRootsOutsideCalls has a client change its roots while no call is going on. The server hears of it, asks for them
// at once, and the question reaches the client on the stream that is open outside calls.
func TestRootsOutsideCalls(t *testing.T) {
	heard := make(chan int, 1)
	srv := mcp.NewServer(&mcp.Implementation{Name: "rooted", Version: "1"}, &mcp.ServerOptions{
		RootsListChangedHandler: func(ctx context.Context, r *mcp.RootsListChangedRequest) {
			roots, err := r.Session.ListRoots(ctx, nil)
			if err != nil {
				t.Errorf("list roots: %v", err)
				return
			}
			heard <- len(roots.Roots)
		},
	})
	mcp.AddTool(srv, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest,
		struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	t.Cleanup(upstream.Close)
	url := serveConfig(t, fmt.Sprintf(`{"servers":{"r":{"type":"http","url":%q}}}`, upstream.URL))

	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	client.AddRoots(&mcp.Root{URI: "file:///one"})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "r__hello"}); err != nil {
		t.Fatal(err)
	}
	client.AddRoots(&mcp.Root{URI: "file:///two"})
	select {
	case n := <-heard:
		if n != 2 {
			t.Errorf("the server heard of %d roots, want 2", n)
		}
	case <-t.Context().Done():
		t.Error("the server was not told")
	}
}

// TestRootsOfTheSettings has a server ask for roots in a call of a client that has none: it hears those of
// [mcp.roots], with their names.
func TestRootsOfTheSettings(t *testing.T) {
	srv := mcp.NewServer(&mcp.Implementation{Name: "rooted", Version: "1"}, nil)
	ask := func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		text := ""
		for _, root := range roots.Roots {
			text += root.Name + " at " + root.URI + "; "
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	mcp.AddTool(srv, &mcp.Tool{Name: "ask"}, ask)
	upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	t.Cleanup(upstream.Close)
	settings := "[[mcp.roots]]\nuri = \"file:///srv/docs\"\nname = \"docs\"\n[[mcp.roots]]\npath = \"/srv/src\"\nname = \"sources\"\n"
	url := runGateway(t, fmt.Sprintf(`{"servers":{"r":{"type":"http","url":%q}}}`, upstream.URL), settings).url

	options := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, options)
	transport := &mcp.StreamableClientTransport{Endpoint: url}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "r__ask"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "docs at file:///srv/docs; sources at file:///srv/src; "
	if text, _ := result.Content[0].(*mcp.TextContent); text == nil || text.Text != want {
		t.Errorf("the server heard %+v, want %q", result.Content[0], want)
	}
}
