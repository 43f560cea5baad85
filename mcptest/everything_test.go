//lint:file-ignore SA1019 the client answers what servers may still ask: sampling and roots

package mcptest_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect starts a server and shakes hands with it. Protocol "" lets the SDK choose, newest first.
func connect(t *testing.T, protocol, name string, args ...string) *mcp.ClientSession {
	t.Helper()
	return connectTo(t, protocol, command(t, name, args...))
}

func command(t *testing.T, name string, args ...string) mcp.Transport {
	t.Helper()
	program, args, env := mcptest.ServerCommand(t, name, args...)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	return &mcp.CommandTransport{Command: cmd}
}

func connectTo(t *testing.T, protocol string, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "oracle", Role: "assistant", Content: &mcp.TextContent{Text: "42"}},
				nil
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///home/ada"})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func call(t *testing.T, session *mcp.ClientSession, name string, arguments map[string]any) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(result.Content) == 0 {
		t.Fatalf("%s: no content", name)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

func TestEverything(t *testing.T) {
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(protocol, func(t *testing.T) {
			session := connect(t, protocol, "everything")
			for _, tt := range []struct {
				tool      string
				arguments map[string]any
				want      string
			}{
				{"echo", map[string]any{"text": "hello"}, "hello"},
				{"add", map[string]any{"a": 2, "b": 3}, "5"},
				{"slow", map[string]any{"ms": 1}, "waited 1 ms"},
				{"progress", map[string]any{"steps": 2}, "no progress token was sent"},
				{"log", map[string]any{"text": "a line"}, "logged"},
				{"ask-elicitation", map[string]any{}, "hello, Ada"},
				{"ask-sampling", map[string]any{"prompt": "?"}, "oracle says 42"},
				{"ask-roots", map[string]any{}, `roots: ["file:///home/ada"]`},
				{"fail", map[string]any{}, "this tool always fails"},
				{"toggle", map[string]any{}, "added extra"},
				{"toggle", map[string]any{}, "removed extra"},
				{"touch", map[string]any{"uri": "test://touched"}, "touched test://touched"},
			} {
				if got := call(t, session, tt.tool, tt.arguments); got != tt.want {
					t.Errorf("%s(%v) = %q, want %q", tt.tool, tt.arguments, got, tt.want)
				}
			}
		})
	}
}
