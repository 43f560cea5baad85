package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// TestAnswersWithoutRoom has answers that find no room in the budget, in every form in which a server sends them.
func TestAnswersWithoutRoom(t *testing.T) { overBoth(t, testAnswersWithoutRoom) }

func testAnswersWithoutRoom(t *testing.T) {
	text := `{"jsonrpc":"2.0","id":$,"result":{"x":"` + strings.Repeat("y", 600<<10) + `"}}`
	for _, tt := range []struct{ contentType, body string }{{plain, text}, {events, "data: " + text + "\n\n"}} {
		server := func(w http.ResponseWriter, r *http.Request) { say(w, 200, tt.contentType, read(t, r), tt.body) }
		budget := mcp.NewAnswerBudget(2 << 20)
		h := dial(t, transport.HTTPOptions{Client: serve(t, server), Budget: budget})
		call := func(ctx context.Context) error {
			_, err := h.Call(ctx, mcp.MethodToolsCall, []byte(`{`+modern+`}`), nil)
			return err
		}
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: with room: %v", tt.contentType, err)
		}
		other := holdBudget(t, budget)
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan struct{})
		go func() {
			defer close(waits)
			for budget.Waiting() == 0 && ctx.Err() == nil {
				runtime.Gosched()
			}
			cancel()
		}()
		checkNoRoom(t, tt.contentType, call(ctx), drawbridge.RateLimited)
		cancel()
		<-waits
		other.Drop()
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: with room again: %v", tt.contentType, err)
		}
		small := dial(t, transport.HTTPOptions{Client: serve(t, server), Budget: mcp.NewAnswerBudget(512 << 10)})
		_, err := small.Call(t.Context(), mcp.MethodToolsCall, []byte(`{`+modern+`}`), nil)
		checkNoRoom(t, tt.contentType+" alone", err, drawbridge.ServerError)
	}
}

// TestLineWithoutRoom has a server on a pipe: its call fails, and the next one passes.
func TestLineWithoutRoom(t *testing.T) {
	budget := mcp.NewAnswerBudget(2 << 20)
	other := holdBudget(t, budget)
	out, in := io.Pipe()
	lines := mcp.NewLineReader(out, 0)
	lines.UseBudget(t.Context(), budget, 50*time.Millisecond)
	result := strings.Repeat("y", 600<<10)
	s := transport.NewStreamConn(t.Context(), transport.StreamConnOptions{
		Send: func(_ context.Context, msg []byte) error {
			m, err := mcp.ParseMessage(msg)
			if err == nil {
				_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"x":"`+result+"\"}}\n")
			}
			return err
		},
		Receive: lines.Next,
		Close:   func(context.Context) error { return errors.Join(in.Close(), out.Close()) },
	})
	defer s.Close(t.Context())
	_, err := s.Call(t.Context(), mcp.MethodToolsCall, []byte(`{}`), nil)
	checkNoRoom(t, "a line", err, drawbridge.RateLimited)
	other.Drop()
	if m, err := s.Call(t.Context(), mcp.MethodToolsCall, []byte(`{}`), nil); err != nil || len(m.Result) < len(result) {
		t.Errorf("with room: %d bytes, %v", len(m.Result), err)
	}
}

// holdBudget takes most of a budget of 2 MiB.
func holdBudget(t *testing.T, budget *mcp.AnswerBudget) *mcp.AnswerBuffer {
	t.Helper()
	other := mcp.NewAnswerBuffer(t.Context(), budget, 0)
	if err := other.Append(bytes.Repeat([]byte("z"), 1800<<10)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Drop)
	return other
}

func checkNoRoom(t *testing.T, what string, err error, code drawbridge.FaultCode) {
	t.Helper()
	if !mcp.IsNoRoom(err) || transport.FaultCodeOf(err) != code || !errors.Is(err, transport.ErrLost) ||
		!strings.Contains(err.Error(), mcp.AnswersInFlightSetting) {
		t.Errorf("%s: %v (%s), want %s and the name of the setting", what, err, transport.FaultCodeOf(err), code)
	}
}
