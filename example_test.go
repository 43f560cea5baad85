//go:build !nomcp

package drawbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
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
