//go:build peers

package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// mcpGoServer is the part of a server made with mark3labs/mcp-go: "stdio", or "http" and the revisions it is to speak.
const mcpGoServer = "mcp-go-server"

func playMCPGo(args []string) int {
	s := newMCPGo()
	var err error
	switch {
	case len(args) == 1 && args[0] == "stdio":
		err = server.NewStdioServer(s.MCPServer).Listen(context.Background(), os.Stdin, os.Stdout)
	case len(args) > 0 && args[0] == "http":
		err = serveMCPGo(s.MCPServer, args[1:])
	default:
		err = errors.New("want stdio, or http and revisions")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 1
	}
	return 0
}

// serveMCPGo serves on a free port, and says which on standard error. It ends with the signal that start sends.
func serveMCPGo(s *server.MCPServer, revisions []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "loopback port %d\n", l.Addr().(*net.TCPAddr).Port)
	return http.Serve(l, server.NewStreamableHTTPServer(s,
		server.WithStreamableHTTPProtocolVersions(revisions...), server.WithStateful(slices.Contains(revisions,
			string(legacy)))))
}

// mcpGoHTTP starts such a server for these revisions and gives its URL.
func mcpGoHTTP(t *testing.T, revisions ...string) string {
	t.Helper()
	command := mcpGoRow(t, "", append([]string{"http"}, revisions...)...)
	cmd := exec.Command(command.Command, command.Args...)
	cmd.Env = append(os.Environ(), role+"="+mcpGoServer)
	said, port := first(func(line string) (string, bool) { return strings.CutPrefix(line, "loopback port ") })
	p := start(t, cmd, nil, said)
	return loopback + await(t, p, port, "its port") + "/mcp"
}

func mcpGoRow(t *testing.T, name string, args ...string) row {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return row{Name: name, Command: self, Args: args, Env: map[string]string{role: mcpGoServer}}
}

// An mcpGo is the server, with what its tools remember.
type mcpGo struct {
	*server.MCPServer

	mu                 sync.Mutex
	waiting, cancelled map[string]int
}

func newMCPGo() *mcpGo {
	s := &mcpGo{waiting: map[string]int{}, cancelled: map[string]int{}}
	s.MCPServer = server.NewMCPServer("peers-mcp-go", "1", server.WithToolCapabilities(true), server.WithLogging(),
		server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true), server.WithElicitation(),
		server.WithRoots(),
		server.WithCompletions(), server.WithPromptCompletionProvider(greetings{}))
	s.EnableSampling()
	key := mcp.WithString("key", mcp.Required())
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("Says the text again."), mcp.WithString("text", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(r.GetString("text", "")), nil
		})
	s.AddTool(mcp.NewTool("ask", mcp.WithDescription("Asks for a name, then for words and roots at once.")), ask)
	s.AddTool(mcp.NewTool("count", mcp.WithDescription("Counts to three, and tells its progress.")), s.count)
	s.AddTool(mcp.NewTool("wait", mcp.WithDescription("Waits until it is cancelled."), key), s.wait)
	s.AddTool(mcp.NewTool("waiting", mcp.WithDescription("Says how many wait."), key), s.tell(s.waiting))
	s.AddTool(mcp.NewTool("cancelled", mcp.WithDescription("Says how often wait was cancelled."), key),
		s.tell(s.cancelled))
	s.AddTool(mcp.NewTool("touch", mcp.WithDescription("Tells that the note has changed.")), s.touch)
	s.AddTool(mcp.NewTool("grow", mcp.WithDescription("Adds a tool."), key), s.grow)
	s.AddResource(mcp.NewResource(note, "note"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents,
		error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: note, MIMEType: "text/plain", Text: "a note"}}, nil
	})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("whom")), func(_ context.Context, r mcp.GetPromptRequest) (
		*mcp.GetPromptResult, error) {
		text := mcp.NewTextContent("Greet " + r.Params.Arguments["whom"])
		return mcp.NewGetPromptResult("a greeting", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, text)}), nil
	})
	return s
}

const note = "peers://note"

// ask takes three rounds with a modern client. With a legacy one mcp-go itself asks, in the course of the call.
func ask(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := r.Params.InputResponses
	switch name, knows := strings.CutPrefix(r.Params.RequestState, "name "); {
	case knows:
		said, roots := server.SamplingResponse(answers, "say"), server.RootsResponse(answers, "where")
		if said == nil || roots == nil || len(roots.Roots) != 1 {
			return mcp.NewToolResultErrorf("answered %v and %v", said, roots), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s, of %s, by %s", name, roots.Roots[0].URI, said.Model)), nil
	case r.Params.RequestState == "asked":
		who := server.ElicitationResponse(answers, "who")
		if who == nil || who.Action != mcp.ElicitationResponseActionAccept {
			return mcp.NewToolResultErrorf("answered %v", who), nil
		}
		content, _ := who.Content.(map[string]any)
		return server.NewInputRequestBuilder(fmt.Sprint("name ", content["name"])).Roots("where").Sample("say",
			mcp.CreateMessageParams{
				MaxTokens: 10,
				Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("say something")}},
			}).ToolResult(), nil
	}
	return server.NewInputRequestBuilder("asked").Elicit("who", mcp.ElicitationParams{
		Message: "Who are you?",
		RequestedSchema: map[string]any{"type": "object", "required": []string{"name"},
			"properties": map[string]any{"name": map[string]any{"type": "string"}}},
	}).ToolResult(), nil
}

// count takes its time: mcp-go sends notifications from a goroutine of its own, behind the answer of a call that is
// fast.
func (s *mcpGo) count(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	work := time.NewTicker(30 * time.Millisecond)
	defer work.Stop()
	for n := 1; n <= 3; n++ {
		if r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
			break
		}
		params := map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": n, "total": 3}
		if err := s.SendNotificationToClient(ctx, "notifications/progress", params); err != nil {
			return nil, err
		}
		<-work.C
	}
	return mcp.NewToolResultText("three"), nil
}

func (s *mcpGo) wait(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.add(s.waiting, r, 1)
	<-ctx.Done()
	s.add(s.waiting, r, -1)
	s.add(s.cancelled, r, 1)
	return nil, ctx.Err()
}

func (s *mcpGo) add(count map[string]int, r mcp.CallToolRequest, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count[r.GetString("key", "")] += n
}

func (s *mcpGo) tell(count map[string]int) server.ToolHandlerFunc {
	return func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return mcp.NewToolResultText(fmt.Sprint(count[r.GetString("key", "")])), nil
	}
}

func (s *mcpGo) touch(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": note})
	return mcp.NewToolResultText("touched"), nil
}

func (s *mcpGo) grow(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.AddTool(mcp.NewTool("grown-"+r.GetString("key", ""), mcp.WithDescription("Was added.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("grown"), nil
		})
	return mcp.NewToolResultText("grown"), nil
}

// greetings completes the argument of the prompt.
type greetings struct{}

func (greetings) CompletePromptArgument(_ context.Context, _ string, argument mcp.CompleteArgument,
	_ mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{argument.Value + "orld", argument.Value + "eather"}}, nil
}
