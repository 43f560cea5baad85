//go:build bench

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A hangman has a tool that never answers, and counts what becomes of its calls.
type hangman struct{ begun, cancelled atomic.Int64 }

// hang waits until its call is cancelled.
func (h *hangman) hang(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	h.begun.Add(1)
	<-ctx.Done()
	h.cancelled.Add(1)
	return nil, ctx.Err()
}

// hung answers with the counts.
func (h *hangman) hung(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{
		Text: fmt.Sprintf("begun %d, cancelled %d", h.begun.Load(), h.cancelled.Load())}}}, nil
}

// hang is what becomes of a call that its server never answers, of the calls beside it, and of the server.
func hang(t *testing.T) []line {
	const beside = 50
	limit := 3 * time.Second
	if testing.Short() {
		limit = time.Second
	}
	row := onStdio("up", self(t))
	row.Timeout = int(limit / time.Millisecond)
	w := through(t, row)
	quiet := contender{name: "alone", clients: []client{w}, request: small("up__"), p: w.p}
	loud := quiet
	loud.name = "beside"
	before := latencies(t, 1, beside, &quiet)
	hangs := connect(t, w.url)
	ended := make(chan error, 1)
	began := time.Now()
	var took time.Duration
	go func() { // it ends with the call
		_, err := hangs.call(toolCall("up__hang", `{}`, ""))
		took = time.Since(began)
		ended <- err
	}()
	count := func(want string) bool {
		return until(10*time.Second, func() bool {
			_, err := w.call(toolCall("up__hung", `{}`, want))
			return err == nil
		})
	}
	if !count("begun 1, cancelled 0") {
		t.Fatal("the call that hangs did not begin")
	}
	answered := 0
	var besides []float64
	for range beside {
		one := time.Now()
		if _, err := w.call(small("up__")); err == nil {
			answered++
			besides = append(besides, microseconds(one))
		}
	}
	err := <-ended
	if !errors.Is(err, errAnswer) || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("the call that hangs: %v", err)
	}
	heard := 0.0
	if count("begun 1, cancelled 1") {
		heard = 1
	}
	return []line{
		{what: "calls answered beside one that hangs, of 50", subject: fmt.Sprintf("median %.0f µs", median(besides)),
			control: fmt.Sprintf("before it %.0f µs", median(before.of(&quiet).p50)), value: float64(answered),
			bar: beside, least: true, format: "%.0f"},
		{what: "a call that hangs ends ÷ its time limit", subject: fmt.Sprintf("%.2f s", took.Seconds()),
			control: fmt.Sprintf("timeout %.0f s", limit.Seconds()), value: took.Seconds() / limit.Seconds(), bar: 1.2,
			format: "%.2f", timed: true},
		{what: "its server is told that it ended", subject: "cancelled", value: heard, bar: 1, least: true,
			format: "%.0f"},
	}
}
