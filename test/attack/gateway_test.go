//go:build !nomcp

package attack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// patience is longer than anything takes that works.
const patience = 30 * time.Second

// A house is a gateway under siege.
type house struct {
	*gateway.Gateway
	t testing.TB
	// stop ends it and waits for all of it. It may be called again.
	stop func()
}

// open runs a gateway on these servers until the test ends, and waits until each is there or has a fault.
func open(t testing.TB, rows ...config.Server) *house {
	t.Helper()
	return openWith(t, gateway.Config{Servers: rows})
}

func openWith(t testing.TB, c gateway.Config) *house {
	t.Helper()
	if c.Store == "" {
		c.Store = gateway.MemoryStore
	}
	c.Version = "test"
	g, err := gateway.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Run(context.Background()) }()
	h := &house{Gateway: g, t: t}
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := errors.Join(g.Close(), <-done); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	t.Cleanup(h.stop)
	return h
}

// call calls a tool as the owner, who answers no questions.
func (h *house) call(ctx context.Context, params string) (string, error) {
	result, err := h.Deck().Call(ctx, drawbridge.Call{Caller: h.Owner(), Params: json.RawMessage(params)})
	return string(result.Raw), err
}

// statusOf gives how a server is.
func (h *house) statusOf(id drawbridge.ServerID) drawbridge.ServerStatus {
	for _, s := range h.Status() {
		if s.Server == id {
			return s
		}
	}
	return drawbridge.ServerStatus{}
}

// eventually waits until something is so.
func eventually(t testing.TB, otherwise string, is func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-deadline:
			t.Fatal(otherwise)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// textOf is the text of a tool's result.
func textOf(result string) string {
	var all strings.Builder
	for block := range rawjson.Elements(rawjson.Get([]byte(result), "content")) {
		all.WriteString(rawjson.GetString(block, "text"))
	}
	return all.String()
}

func serversOf(rows ...config.Server) []config.Server { return rows }
