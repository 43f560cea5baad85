//go:build !nomcp

package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	protocol "github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// cells are the two generations, each over the two transports.
func cells(t *testing.T, check func(t *testing.T, only mcptest.OnlyEra, row func(*mcptest.Server,
	drawbridge.ServerID) config.Server)) {
	for _, era := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
		for name, row := range map[string]func(*mcptest.Server, drawbridge.ServerID) config.Server{
			"stdio": (*mcptest.Server).Stdio, "HTTP": (*mcptest.Server).HTTP,
		} {
			t.Run(fmt.Sprintf("%s over %s", era, name), func(t *testing.T) {
				t.Parallel()
				check(t, mcptest.OnlyEra(era), row)
			})
		}
	}
}

// open runs a gateway with these servers until the test ends.
func open(t *testing.T, rows ...config.Server) *gateway.Gateway {
	t.Helper()
	g, err := gateway.Open(t.Context(), gateway.Config{Store: gateway.MemoryStore, Servers: rows, OnDemand: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := errors.Join(g.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	if _, faults := g.MountAll(t.Context()); len(faults) > 0 {
		t.Fatal(faults)
	}
	return g
}

// A person says "Ada" to every question.
type person struct{ heard chan string }

func (p person) Notify(_ context.Context, method string, params json.RawMessage) error {
	p.heard <- method + " " + string(rawjson.Get(params, "progress"))
	return nil
}

func (p person) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
}

func (p person) call(t *testing.T, g *gateway.Gateway, method, params string) string {
	t.Helper()
	caller, end := g.NewCaller(json.RawMessage(`{"elicitation":{}}`))
	defer end()
	result, err := g.Deck().Do(t.Context(), drawbridge.Call{Caller: caller, Method: method,
		Params: json.RawMessage(params), Peer: p})
	if err != nil {
		return "error: " + err.Error()
	}
	return string(result.Raw)
}

// TestAServerOfFunctions calls everything that a server can be made of, in each generation and over each transport.
func TestAServerOfFunctions(t *testing.T) {
	cells(t, func(t *testing.T, only mcptest.OnlyEra, row func(*mcptest.Server, drawbridge.ServerID) config.Server) {
		fake := mcptest.NewServer(t, only, mcptest.Instructions("Be kind."),
			mcptest.Tool{Name: "greet", Description: "Greets the user.", Answer: func(ctx context.Context,
				c *mcptest.ServerCall) (json.RawMessage, error) {
				c.Progress(1, 2)
				answer, err := c.AskClient(ctx, protocol.MethodElicitation,
					json.RawMessage(
						`{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`))
				if err != nil {
					return nil, fmt.Errorf("greet: %w", err)
				}
				return c.Text("hello, " + rawjson.GetString(answer, "content", "name")), nil
			}},
			mcptest.Tool{Name: "bytes", Answer: mcptest.Result(`{"content":[],"unheard_of":12345678901234567890}`)},
			mcptest.Tool{Name: "fails", Answer: func(context.Context, *mcptest.ServerCall) (json.RawMessage, error) {
				return nil, errors.New("no paper")
			}},
			mcptest.Tool{Name: "refuses", Answer: func(context.Context, *mcptest.ServerCall) (json.RawMessage, error) {
				return nil, mcptest.Refuse(-32602, "not so")
			}},
			mcptest.Prompt{Name: "plan", Arguments: []string{"goal"}},
			mcptest.Resource{URI: "test://page", Name: "page", Answer: mcptest.Text("a page")})
		g := open(t, row(fake, "up"))
		p := person{make(chan string, 10)}
		for _, tt := range []struct{ method, params, want string }{
			{protocol.MethodToolsCall, `{"name":"up__greet","_meta":{"progressToken":1}}`, `"hello, Ada"`},
			{protocol.MethodToolsCall, `{"name":"up__bytes"}`, `"unheard_of":12345678901234567890`},
			{protocol.MethodToolsCall, `{"name":"up__fails"}`, `"no paper"`},
			{protocol.MethodToolsCall, `{"name":"up__refuses"}`, `not so`},
			{protocol.MethodPromptsGet, `{"name":"up__plan","arguments":{"goal":"rest"}}`, `{\"goal\":\"rest\"}`},
			{protocol.MethodResourcesRead, `{"uri":"test://page"}`, `"a page"`},
		} {
			if got := p.call(t, g, tt.method, tt.params); !strings.Contains(got, tt.want) {
				t.Errorf("%s %s: %s, want %s", tt.method, tt.params, got, tt.want)
			}
		}
		if got := <-p.heard; got != "notifications/progress 1" {
			t.Errorf("heard %s", got)
		}
		var asked []string
		for _, r := range fake.Await(protocol.MethodToolsCall, 4) {
			asked = append(asked, r.Name)
		}
		want := []string{"greet", "bytes", "fails", "refuses"}
		if only == mcptest.OnlyEra(drawbridge.Modern) {
			want = []string{"greet", "greet", "bytes", "fails", "refuses"} // its client comes back with the answer
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWhatChanges has a tool come and another go: the gateway's deck follows.
func TestWhatChanges(t *testing.T) {
	cells(t, func(t *testing.T, only mcptest.OnlyEra, row func(*mcptest.Server, drawbridge.ServerID) config.Server) {
		fake := mcptest.NewServer(t, only, mcptest.Tool{Name: "old"})
		g := open(t, row(fake, "up"))
		fake.AddParts(mcptest.Tool{Name: "new"})
		fake.RemoveFeatures("old")
		has := func(name string) bool {
			for _, c := range g.Deck().Cards(g.Owner()) {
				if c.Name == drawbridge.CardName(name) {
					return true
				}
			}
			return false
		}
		deadline := time.After(time.Minute)
		for has("up__old") || !has("up__new") {
			select {
			case <-deadline:
				t.Fatalf("the deck did not follow: %v", fake.Requests())
			case <-time.After(5 * time.Millisecond):
				fake.Notify(protocol.NoteToolsChanged, nil) // it may not have listened yet
			}
		}
	})
}

// TestACrash ends the server's process: the next call starts another.
func TestACrash(t *testing.T) {
	fake := mcptest.NewServer(t, mcptest.Tool{Name: "say", Answer: mcptest.Text("here")})
	g := open(t, fake.Stdio("up"))
	p := person{make(chan string, 1)}
	for lives := range 2 {
		fake.AwaitProcesses(1)
		if fake.Started() != lives+1 {
			t.Errorf("%d processes were started after %d crashes", fake.Started(), lives)
		}
		fake.Crash()
		fake.AwaitProcesses(0)
		patience := time.After(time.Minute)
		for !strings.Contains(p.call(t, g, protocol.MethodToolsCall, `{"name":"up__say"}`), "here") {
			select {
			case <-patience:
				t.Fatalf("it does not come back: %+v", g.Status())
			case <-time.After(5 * time.Millisecond): // the gateway may not have seen the end yet
			}
		}
	}
}

// TestWithTheOfficialClient has the official SDK's client take the fake for a server.
func TestWithTheOfficialClient(t *testing.T) {
	fake := mcptest.NewServer(t, mcptest.Tool{Name: "say", Answer: mcptest.Text("hello")},
		mcptest.Resource{URI: "test://page", Answer: mcptest.Text("a page")})
	path, env := fake.Command()
	command := exec.Command(path)
	command.Env = append(command.Environ(), env...)
	for name, transport := range map[string]mcp.Transport{
		"stdio": &mcp.CommandTransport{Command: command},
		"HTTP":  &mcp.StreamableClientTransport{Endpoint: fake.URL()},
	} {
		t.Run(name, func(t *testing.T) {
			session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"},
				nil).Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 1 {
				t.Fatalf("%v, %v", tools, err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "say"})
			if err != nil || result.Content[0].(*mcp.TextContent).Text != "hello" {
				t.Errorf("%v, %v", result, err)
			}
			page, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://page"})
			if err != nil || page.Contents[0].Text != "a page" {
				t.Errorf("%v, %v", page, err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
