//go:build !nomcp

package drawbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A program mounts two servers, lists the deck and calls a card. Its main begins with gateway.RunReaperProcess().
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	g, err := gateway.Open(ctx, gateway.Config{
		Store:   gateway.MemoryStore,
		Servers: []config.Server{echoServer("red"), echoServer("blue")},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	go g.Run(ctx)

	cards, faults := g.MountAll(ctx)
	for _, card := range cards {
		fmt.Printf("%s: %s\n", card.Name, card.Summary)
	}
	for id, err := range faults {
		fmt.Printf("%s is not there: %v\n", id, err)
	}

	result, err := g.Deck().Call(ctx, drawbridge.Call{
		Caller: g.Owner(),
		Params: []byte(`{"name": "blue__echo", "arguments": {"text": "hello"}}`),
	})
	fmt.Println(string(result.Raw), err)
	// Output:
	// drawbridge_tools: List the tools that can be called here, with the server each comes from.
	// drawbridge_scopes: Show who you are to Drawbridge, and which scopes you hold.
	// drawbridge_workspace: Show which workspace is open.
	// drawbridge_sign_in: Sign in at a server whose tools are missing because it requires a sign-in.
	// red__echo: Says the text again.
	// blue__echo: Says the text again.
	// {"content":[{"type":"text","text":"hello"}]} <nil>
}

// A person answers requests of servers during a call.
type person struct{ name string }

func (p person) Notify(_ context.Context, method string, params json.RawMessage) error { return nil }

func (p person) Request(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	fmt.Printf("%s %s\n", method, rawjson.GetString(params, "message"))
	return json.RawMessage(`{"action":"accept","content":{"name":"` + p.name + `"}}`), nil
}

// A part of a program that answers requests of servers is a client of its own, as in the specification: it declares
// its capabilities, and answers such requests in every era of the protocol.
func Example_client() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	g, err := gateway.Open(ctx, gateway.Config{
		Store:   gateway.MemoryStore,
		Servers: []config.Server{testServer("old", "everything-legacy"), testServer("new", "modern-only")},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	go g.Run(ctx)
	g.MountAll(ctx)

	caller, end := g.NewCaller(json.RawMessage(`{"elicitation":{}}`))
	defer end()
	for _, params := range []string{
		`{"name": "old__ask-elicitation", "arguments": {"message": "Who are you?"}}`,
		`{"name": "new__confirm"}`,
	} {
		result, err := g.Deck().Call(ctx, drawbridge.Call{Caller: caller, Params: json.RawMessage(params),
			Peer: person{"Ada"}})
		if err != nil {
			log.Fatal(err)
		}
		for block := range rawjson.Elements(rawjson.Get(result.Raw, "content")) {
			fmt.Println(rawjson.GetString(block, "text"))
		}
	}
	// Output:
	// elicitation/create Who are you?
	// hello, Ada
	// elicitation/create Who are you?
	// hello, Ada
}

// A guardian is an interceptor that keeps files with "secret" in their path from being read.
type guardian struct{}

func (guardian) Name() string                      { return "guardian" }
func (guardian) Intercepts(s drawbridge.Spec) bool { return s.Name == "read" }

func (guardian) Before(_ context.Context, c *deck.InterceptedCall) (deck.Interception, error) {
	if strings.Contains(rawjson.GetString(c.Arguments, "path"), "secret") {
		return deck.Interception{Blocked: "secrets are not read"}, nil
	}
	return deck.Interception{}, nil
}

func (guardian) After(context.Context, *deck.InterceptedCall, deck.CallOutcome) (json.RawMessage, error) {
	return nil, nil
}

// A program calls Drawbridge's own tools as its person does at the command line. An interceptor sees each call.
func Example_ownTools() {
	dir, err := os.MkdirTemp("", "drawbridge-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	g, err := gateway.Open(ctx, gateway.Config{
		Store: gateway.MemoryStore, Dir: dir, Servers: []config.Server{echoServer("red")}, OnDemand: true,
		Interceptors: []deck.Interceptor{guardian{}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	me := g.Owner()
	me.Kind, me.Session = drawbridge.Author, "example"
	for _, params := range []string{
		`{"name": "write", "arguments": {"path": "notes.txt", "content": "Buy milk.\nBuy bread.\n"}}`,
		`{"name": "grep", "arguments": {"pattern": "bread"}}`,
		`{"name": "bash", "arguments": {"command": "wc -l < notes.txt"}}`,
		`{"name": "read", "arguments": {"path": "secret.txt"}}`,
	} {
		result, err := g.Deck().Call(ctx, drawbridge.Call{Caller: me, Params: []byte(params)})
		fmt.Println(strings.TrimSpace(result.Text()), err)
	}
	// Output:
	// Saved 21 byte(s) to notes.txt. <nil>
	// notes.txt:2: Buy bread. <nil>
	// stdout:
	// 2
	// status: exit 0 <nil>
	//  tools/call read: blocked by guardian: secrets are not read
}
