//go:build peers

package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSDKClient uses the gateway with the official Go SDK's client, in both eras and through both doors.
func TestSDKClient(t *testing.T) {
	rows := []row{{Name: "sdk", Command: conformant}}
	url := serveHTTP(t, rows)
	listed(t, &httpDoor{url: url, era: modern}, "sdk__test_simple_text")
	for _, e := range []era{legacy, modern} {
		t.Run("http "+string(e), func(t *testing.T) {
			useSDK(t, &mcp.StreamableClientTransport{Endpoint: url}, e)
		})
		t.Run("stdio "+string(e), func(t *testing.T) {
			useSDK(t, &mcp.CommandTransport{Command: warmed(t, rows, "sdk__test_simple_text")}, e)
		})
	}
}

func useSDK(t *testing.T, transport mcp.Transport, e era) {
	ctx := limit(t, time.Minute)
	client := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: string(e)})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := session.InitializeResult().ProtocolVersion; got != string(e) {
		t.Errorf("the session speaks %s, want %s", got, e)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "sdk__test_simple_text"})
	if err != nil {
		t.Fatal(err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok || !strings.HasPrefix(text.Text, "This is a simple text response") {
		t.Errorf("got %+v", result.Content[0])
	}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Name == "sdk__test_simple_text" {
			return
		}
	}
	t.Error("the tool that was called is not listed")
}
