//go:build peers

package peers

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

// TestConformancePolling runs the suite's scenario for streams that end in mid-call and are gone on with. It does not
// count, and needs a server that ends such streams: the SDK's own, with a store of events.
func TestConformancePolling(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "polled", Version: "1"}, nil)
	tool := &mcp.Tool{Name: "test_reconnection", Description: "Has its client come back for the answer"}
	mcp.AddTool(server, tool, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		select {
		case <-time.After(100 * time.Millisecond): // the suite says how long
		case <-ctx.Done():
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "welcome back"}}}, nil, nil
	})
	upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}))
	t.Cleanup(upstream.Close)
	url := serveHTTP(t, []row{{Name: "polled", URL: upstream.URL}}, "--naming", "bare")
	listed(t, &httpDoor{url: url, era: modern}, tool.Name)

	ctx := limit(t, time.Minute)
	cmd := exec.CommandContext(ctx, node, module(t, "@modelcontextprotocol/conformance/dist/index.js"),
		"server", "--url", url, "--scenario", "server-sse-polling", "-o", t.TempDir())
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Passed: 3/3, 0 failed, 0 warnings") {
		t.Errorf("the suite says: %v\n%s", err, out)
	}
}
