//go:build !nomcp

package gateway_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestUpdatesOfACallersOwnProcess: a stateful client that can be asked has a process of a stdio server for itself, and
// hears of what its calls change there; and what the server does not let it watch does not end that.
func TestUpdatesOfACallersOwnProcess(t *testing.T) {
	for _, server := range []string{"everything-legacy", "everything"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			url := serveConfig(t, fmt.Sprintf(`{"servers":{"up":%s}}`, mcptest.ServerRow(t, server)))
			updates := make(chan string, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
				ResourceUpdatedHandler: func(_ context.Context,
					r *mcp.ResourceUpdatedNotificationRequest) {
					updates <- r.Params.URI
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url},
				&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://touched"}); err != nil {
				t.Fatal(err)
			}
			if err := s.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://private"}); err == nil {
				t.Error("what the server refused to watch is said to be watched")
			}
			for _, call := range []*mcp.CallToolParams{
				{Name: "up__ask-elicitation", Arguments: map[string]any{"message": "who?"}},
				{Name: "up__touch", Arguments: map[string]any{"uri": "test://touched"}},
			} {
				if _, err := s.CallTool(ctx, call); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case uri := <-updates:
				if uri != "test://touched" {
					t.Errorf("an update of %s", uri)
				}
			case <-time.After(patience):
				t.Error("no update")
			}
		})
	}
}
