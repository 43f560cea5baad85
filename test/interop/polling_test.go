//go:build peers

package interop

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestConformancePolling is the one scenario that takes an upstream which cuts off its streams and goes on when the
// client is back: what it has the gateway do, the gateway has its client do. The SDK's conformance server keeps no
// events, so that nobody could come back to it; this is the same tool with events kept.
func TestConformancePolling(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "polling", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "test_reconnection", Description: "Cuts off its stream in the middle."}, cutOff)
	upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}))
	t.Cleanup(upstream.Close)
	url := serveHTTP(t, []row{{Name: "upstream", Type: "http", URL: upstream.URL}}, "--naming", "bare")
	listed(t, &httpDoor{url: url, era: legacy}, "test_reconnection")

	records := t.TempDir()
	cmd := exec.CommandContext(limit(t, time.Minute), node,
		module(t, "@modelcontextprotocol/conformance/dist/index.js"),
		"server", "--url", url, "--scenario", "server-sse-polling", "--spec-version", string(legacy), "-o", records)
	cmd.Dir, cmd.WaitDelay = records, time.Second
	out, err := cmd.CombinedOutput()
	if wrong := complaints(t, records); err != nil || len(wrong) > 0 || !strings.Contains(string(out), "Passed: 3/3") {
		t.Errorf("%v\n%s\n%s", err, strings.Join(wrong, "\n"), out)
	}
}

func cutOff(_ context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	if r.Extra != nil && r.Extra.CloseSSEStream != nil {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you are back"}}}, nil, nil
}
