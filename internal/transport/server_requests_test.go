package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A sitter answers when its context ends.
type sitter struct{}

func (sitter) HandleNotification(string, json.RawMessage) {}

func (sitter) HandleRequest(ctx context.Context, _ string, _ json.RawMessage) (result, errorObject json.RawMessage) {
	<-ctx.Done()
	return json.RawMessage(`{}`), nil
}

// TestRequestsThatAreDroppedAreNotLoggedOneByOne has a server ask very much more than is answered: the log says so
// once a minute.
func TestRequestsThatAreDroppedAreNotLoggedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		// The answers that refuse wait too, as those do that nobody reads.
		a := newRequestResponder(func(ctx context.Context, _ mcp.Message) { <-ctx.Done() }, 1,
			slog.New(slog.NewTextHandler(&log, nil)))
		n := 0
		flood := func() {
			for range 1000 {
				n++
				a.respond(ctx, sitter{}, mcp.Message{ID: json.RawMessage(strconv.Itoa(n)),
					Method: mcp.MethodElicitation})
			}
		}
		flood()
		flood()
		if lines := strings.Count(log.String(), "\n"); lines != 1 {
			t.Errorf("%d lines of %d requests", lines, n)
		}
		<-time.After(time.Minute)
		flood()
		if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), "dropped=1998") {
			t.Errorf("%d lines: %s", lines, log.String())
		}
		cancel()
		a.closeAndWait()
	})
}
