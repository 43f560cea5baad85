// Command embed mounts one MCP server from npm and calls one of its tools.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

func main() {
	gateway.RunReaperProcess() // first, so that no server outlives this program
	ctx := context.Background()
	g, err := gateway.Open(ctx, gateway.Config{
		Store: gateway.MemoryStore,
		Servers: []config.Server{{ID: "everything", Command: "npx",
			Args: []string{"-y", "@modelcontextprotocol/server-everything"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	go g.Run(ctx)

	result, err := g.Deck().Call(ctx, drawbridge.Call{
		Caller: g.Owner(),
		Params: []byte(`{"name": "everything__echo", "arguments": {"message": "hello"}}`),
	})
	fmt.Println(result.Text(), err)
}
