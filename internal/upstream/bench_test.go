//go:build unix

package upstream

import (
	"runtime"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// BenchmarkDo carries a small call to a stdio server and back; its control is the server alone, asked by a connection
// without a fleet.
func BenchmarkDo(b *testing.B) {
	command, args, env := mcptest.ServerCommand(b, "legacy")
	name, value := config.NameValue{Name: "MCPTEST_SERVER"}, env[0][len("MCPTEST_SERVER="):]
	name.Value = value
	row := config.Server{ID: "legacy", Type: "stdio", Command: command, Args: args, Env: []config.NameValue{name},
		Hash: "h", Phase: drawbridge.Idle}
	f, err := NewFleet(b.Context(), []config.Server{row}, Options{Principal: owner})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(b.Context()) }()
	b.Cleanup(func() { <-done })
	for !f.pool.isRunning() {
		runtime.Gosched()
	}
	if _, err := f.Mount(b.Context(), "legacy"); err != nil {
		b.Fatal(err)
	}
	call := toolCall(caller(drawbridge.Legacy), "echo",
		`{"text":"0123456789012345678901234567890123456789012345678901234567890123"}`)
	b.Run("fleet", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := f.Do(b.Context(), "legacy", call); err != nil {
				b.Fatal(err)
			}
		}
	})
	home := f.byName["legacy"].sessions.usable()[0]
	b.Run("connection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := home.conn.Call(b.Context(), call.Method, call.Params, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
