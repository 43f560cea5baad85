//go:build peers

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// TestMCPGo uses the gateway with mark3labs/mcp-go's client, in both generations and through both doors, over servers
// made with mcp-go and others.
func TestMCPGo(t *testing.T) {
	t.Parallel()
	url := serveStory(t)
	over := func(t *testing.T) transport.Interface {
		c, err := transport.NewStreamableHTTP(url)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, e := range []era{legacy, modern} {
		t.Run("http "+string(e), func(t *testing.T) {
			t.Parallel()
			newGopher(t, over(t), e).tour(t, e)
		})
		t.Run("stdio "+string(e), func(t *testing.T) {
			t.Parallel()
			cmd := warmed(t, []row{mcpGoRow(t, "gopipe", "stdio")}, "gopipe__echo")
			g := newGopher(t, transport.NewStdio(cmd.Path, cmd.Env, cmd.Args[1:]...), e)
			g.talk(t, "gopipe")
			g.giveUp(t, "gopipe")
		})
	}
}

// A gopher is a client made with mcp-go, and what it heard.
type gopher struct {
	*client.Client
	asked, notes chan string
}

func newGopher(t *testing.T, over transport.Interface, e era) *gopher {
	t.Helper()
	g := &gopher{asked: make(chan string, 100), notes: make(chan string, 1000)}
	options := []client.ClientOption{client.WithElicitationHandler(g), client.WithSamplingHandler(g),
		client.WithRootsHandler(g)}
	if e == legacy {
		options = append(options, client.WithProtocolVersion(string(legacy)))
	}
	g.Client = client.NewClient(over, options...)
	g.OnNotification(func(n mcp.JSONRPCNotification) {
		params, _ := json.Marshal(n.Params)
		g.notes <- n.Method + " " + string(params)
	})
	ctx := limit(t, time.Minute)
	if err := g.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "gopher", Version: "1"}
	hello.Params.ProtocolVersion = string(e)
	if _, err := g.Initialize(ctx, hello); err != nil {
		t.Fatal(err)
	}
	if got := g.ProtocolVersion(); got != string(e) {
		t.Errorf("the client speaks %s, want %s", got, e)
	}
	return g
}

// Elicit answers a question with a name.
func (g *gopher) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	g.asked <- "elicitation: " + r.Params.Message
	var result mcp.ElicitationResult
	result.Action, result.Content = mcp.ElicitationResponseActionAccept, map[string]any{"name": "Ada"}
	return &result, nil
}

// CreateMessage speaks as a model.
func (g *gopher) CreateMessage(_ context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	g.asked <- "sampling"
	var result mcp.CreateMessageResult
	result.Role, result.Content, result.Model = mcp.RoleAssistant, mcp.NewTextContent("words"), "a-model"
	return &result, nil
}

// ListRoots gives one root.
func (g *gopher) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	g.asked <- "roots"
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///peers", Name: "peers"}}}, nil
}

// call calls a tool and gives its text.
func (g *gopher) call(t *testing.T, name string, args map[string]any) string {
	t.Helper()
	var r mcp.CallToolRequest
	r.Params.Name = name
	if args != nil {
		r.Params.Arguments = args
	}
	result, err := g.CallTool(limit(t, time.Minute), r)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var text []string
	for _, c := range result.Content {
		if c, ok := c.(mcp.TextContent); ok {
			text = append(text, c.Text)
		}
	}
	if result.IsError {
		text = append(text, "(an error)")
	}
	return strings.Join(text, " ")
}

// questions takes what was asked since the last time.
func (g *gopher) questions() (all []string) {
	for len(g.asked) > 0 {
		all = append(all, <-g.asked)
	}
	slices.Sort(all)
	return all
}

// tour visits every server, and everything that one server can be asked for.
func (g *gopher) tour(t *testing.T, e era) {
	for _, server := range []string{"gomodern", "golegacy", "gopipe"} {
		g.talk(t, server)
	}
	if got := g.call(t, "every__trigger-elicitation-request", nil); !strings.Contains(got, "- Name: Ada") {
		t.Errorf("server-everything got %s", got)
	}
	g.questions()
	if got := g.call(t, "sdk__test_simple_text", nil); !strings.HasPrefix(got, "This is a simple text") {
		t.Errorf("the SDK's server said %s", got)
	}
	ctx := limit(t, time.Minute)
	var read mcp.ReadResourceRequest
	read.Params.URI = "drawbridge+golegacy:" + note
	if got, err := g.ReadResource(ctx, read); err != nil || len(got.Contents) != 1 {
		t.Errorf("%s: %+v, %v", read.Params.URI, got, err)
	}
	var get mcp.GetPromptRequest
	get.Params.Name, get.Params.Arguments = "golegacy__greet", map[string]string{"whom": "Ada"}
	prompt, err := g.GetPrompt(ctx, get)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mcp.NewTextContent("Greet Ada"), prompt.Messages[0].Content); diff != "" {
		t.Error(diff)
	}
	for _, server := range []string{"gomodern", "golegacy"} {
		g.complete(t, server)
		if e == modern { // mcp-go tells a legacy server of no cancellation over HTTP
			g.giveUp(t, server)
		}
	}
}

// talk has one server answer, ask, and tell its progress.
func (g *gopher) talk(t *testing.T, server string) {
	t.Helper()
	if got := g.call(t, server+"__echo", map[string]any{"text": "hello"}); got != "hello" {
		t.Errorf("%s: echo said %s", server, got)
	}
	if got := g.call(t, server+"__ask", nil); got != "Ada, of file:///peers, by a-model" {
		t.Errorf("%s: ask said %s", server, got)
	}
	if diff := cmp.Diff([]string{"elicitation: Who are you?", "roots", "sampling"}, g.questions()); diff != "" {
		t.Errorf("%s: %s", server, diff)
	}
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Meta = server+"__count", &mcp.Meta{ProgressToken: server}
	if _, err := g.CallTool(limit(t, time.Minute), r); err != nil {
		t.Errorf("%s: count: %v", server, err)
	}
	g.await(t, "notifications/progress", fmt.Sprintf("%q", server))
}

// await waits for a notification with these words in it.
func (g *gopher) await(t *testing.T, words ...string) {
	t.Helper()
	deadline := limit(t, 20*time.Second)
	for {
		select {
		case n := <-g.notes:
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(n, w) }) {
				return
			}
		case <-deadline.Done():
			t.Fatalf("never heard: %v", words)
		}
	}
}

func (g *gopher) complete(t *testing.T, server string) {
	t.Helper()
	var r mcp.CompleteRequest
	r.Params.Ref = mcp.PromptReference{Type: "ref/prompt", Name: server + "__greet"}
	r.Params.Argument = mcp.CompleteArgument{Name: "whom", Value: "w"}
	got, err := g.Complete(limit(t, time.Minute), r)
	if err != nil {
		t.Errorf("%s: complete: %v", server, err)
		return
	}
	if diff := cmp.Diff([]string{"world", "weather"}, got.Completion.Values); diff != "" {
		t.Errorf("%s: %s", server, diff)
	}
}

// giveUp cancels a call, and waits until its server has noticed.
func (g *gopher) giveUp(t *testing.T, server string) {
	t.Helper()
	args := map[string]any{"key": "gopher"}
	ctx, cancel := context.WithCancel(limit(t, time.Minute))
	left := make(chan error, 1)
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = server+"__wait", args
	go func() {
		_, err := g.CallTool(ctx, r)
		left <- err
	}()
	eventually(t, func() bool { return g.call(t, server+"__waiting", args) == "1" })
	cancel()
	if err := <-left; err == nil {
		t.Errorf("%s: a call that was given up was answered", server)
	}
	eventually(t, func() bool { return g.call(t, server+"__cancelled", args) == "1" })
}

// eventually polls.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := limit(t, 20*time.Second); !is(); {
		select {
		case <-again.C:
		case <-deadline.Done():
			t.Fatal("it never came to be")
		}
	}
}
