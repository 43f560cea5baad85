//go:build !nomcp

package mcptest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A test has a server of its own, and one beside it that never answers. Its TestMain begins with
// gateway.RunReaperProcess and RunIfServer.
func Example() {
	// The whole file is the example: go test runs TestWhatTimeItIs.
}

// TestWhatTimeItIs is a test as a program that embeds Drawbridge may have it: it gives a server of its own, written in
// the test, to the gateway, and a hostile one, and looks at what was asked.
func TestWhatTimeItIs(t *testing.T) {
	clock := mcptest.NewServer(t, mcptest.Tool{
		Name: "time", Description: "Says what time it is in a city.",
		Answer: func(_ context.Context, c *mcptest.ServerCall) (json.RawMessage, error) {
			return c.Text("14:02 in " + rawjson.GetString(c.Arguments, "city")), nil
		},
	})
	mute := mcptest.NewHostileServer(t, mcptest.Hang, 0)

	g, err := gateway.Open(t.Context(), gateway.Config{
		Store:   gateway.MemoryStore,
		Servers: []config.Server{clock.Stdio("clock"), mute.HTTP("mute")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	go g.Run(context.Background())
	if _, err := g.Mount(t.Context(), "clock"); err != nil {
		t.Fatal(err)
	}

	result, err := g.Deck().Call(t.Context(), drawbridge.Call{
		Caller: g.Owner(),
		Params: json.RawMessage(`{"name": "clock__time", "arguments": {"city": "Rome"}}`),
	})
	if err != nil || !strings.Contains(string(result.Raw), `"14:02 in Rome"`) {
		t.Errorf("got %s, %v", result.Raw, err)
	}
	if asked := clock.Await(mcp.MethodToolsCall, 1); asked[0].Name != "time" {
		t.Errorf("asked for %v", asked)
	}
}
