//go:build !nomcp

package drawbridge_test

import (
	"context"
	"fmt"
	"log"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// A program mounts two servers, lists the deck and calls a card. Its main begins with gateway.Reap().
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	g, err := gateway.Open(ctx, gateway.Config{
		Store:   gateway.Memory,
		Servers: []config.Server{echoServer("red"), echoServer("blue")},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	go g.Run(ctx)

	cards, faults := g.Load(ctx)
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
	// drawbridge_scopes: Say who you are to Drawbridge, and which scopes you hold.
	// drawbridge_workspace: Say which workspace is open.
	// red__echo: Says the text again.
	// blue__echo: Says the text again.
	// {"content":[{"type":"text","text":"hello"}]} <nil>
}
