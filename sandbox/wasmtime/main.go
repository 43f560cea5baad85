//go:build linux && amd64 && cgo

// Command wasmtime is Drawbridge whose Python scripts run in Wasmtime in place of wazero. It is in a module of its own, so
// that the module of Drawbridge does not require Wasmtime. It is built for Linux on amd64 only, and needs a C compiler.
//
// It is not the program to use by default: its version of Wasmtime lacks later security fixes. See docs/sandbox.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

func main() {
	sandbox.RunWorkerWith(newEngine())
	gateway.RunReaperProcess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], cli.OSProcess())
	stop()
	os.Exit(code)
}
