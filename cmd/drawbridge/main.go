// Command drawbridge serves many MCP servers as one MCP server. See "drawbridge help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
)

func main() {
	gateway.RunReaperProcess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], cli.OSProcess())
	stop()
	os.Exit(code)
}
