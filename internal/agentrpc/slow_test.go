package agentrpc_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/agentrpc"
)

// maxAhead is the number of lines that may be ready before a client has read one.
const maxAhead = 70

// TestSlowReader has clients that do not read for a while: the model waits for them, and no line is lost.
func TestSlowReader(t *testing.T) {
	flood := drawbridge.ModelResponse{Stop: "flood", Message: drawbridge.Message{Parts: []drawbridge.MessagePart{{}}}}
	for name, begin := range map[string]func(*testing.T) (*client, *scriptedHost){
		"acp": func(t *testing.T) (*client, *scriptedHost) {
			c, host := acp(t, flood)
			c.prompt(1, c.openACP(), `{"type":"text","text":"p"}`)
			return c, host
		},
		"link": func(t *testing.T) (*client, *scriptedHost) {
			c, host := link(t, flood)
			c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
			return c, host
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, host := begin(t)
				synctest.Wait()
				if n := host.model.sent.Load(); n == 0 || n > maxAhead {
					t.Errorf("%d pieces were sent to a client that does not read", n)
				}
				lines := strings.Join(c.all(`"id":1,`), "\n")
				at := 0
				for i := range floodLines {
					next := strings.Index(lines[at:], fmt.Sprintf("<%d>", i))
					if next < 0 {
						t.Fatalf("the piece %d is missing, or not in its place", i)
					}
					at += next
				}
				if err := c.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestClientThatReadsNothing ends the context while a client does not read: the server ends all the same.
func TestClientThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		host := &scriptedHost{model: &scriptedModel{name: "a", all: []drawbridge.ModelResponse{{Stop: "flood"}}}}
		in, fromTest := io.Pipe()
		_, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- agentrpc.ServeLink(ctx, agentrpc.Pipes{In: in, Out: out}, host, agentrpc.Opening{}) }()
		_, _ = io.WriteString(fromTest, `{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`+"\n")
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("the server ended with %v", err)
		}
		if took := time.Since(began); took > 5*time.Second || len(host.inUse) != 0 {
			t.Errorf("the server ended after %s with %v held", took, host.inUse)
		}
	})
}

// TestLinkLateModels has providers that do not answer.
func TestLinkLateModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &scriptedHost{slow: make(chan struct{})}
		c := serve(t, host, func(ctx context.Context, p agentrpc.Pipes, h agentrpc.Host) error {
			return agentrpc.ServeLink(ctx, p, h, agentrpc.Opening{})
		})
		for method, params := range map[string]string{"listModels": "{}", "cycleModel": `{"modelId":"test/waits"}`} {
			began := time.Now()
			c.send(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
			if got := c.next(); !strings.Contains(got, `"code":-32000,"message":"the providers of models did not answer within 45s"`) ||
				time.Since(began) != 45*time.Second {
				t.Errorf("%s: %s after %s", method, got, time.Since(began))
			}
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestLinkTooManyRequests sends more requests than may wait: the first of them are handled, each gets one response.
func TestLinkTooManyRequests(t *testing.T) {
	c, host := link(t, says("begins", "wait"))
	c.send(`{"jsonrpc":"2.0","id":"run","method":"submit","params":{"input":"a"}}`)
	c.until("begins")
	const sent = 300
	for i := range sent {
		c.send(`{"jsonrpc":"2.0","id":%d,"method":"listModels"}`, i)
	}
	c.send(`{"jsonrpc":"2.0","id":"stop","method":"abort"}`)
	answers, refused := map[string]int{}, 0
	for len(answers) < sent+2 {
		line := c.until(`"id":`)
		id, _, _ := strings.Cut(strings.TrimPrefix(line, `{"jsonrpc":"2.0","id":`), ",")
		answers[id]++
		if strings.Contains(line, "requests wait already") {
			refused++
		}
	}
	if refused != sent-256 {
		t.Errorf("%d requests were refused", refused)
	}
	for id, n := range answers {
		if n != 1 {
			t.Errorf("the request %s got %d responses", id, n)
		}
	}
	if s := host.model; len(s.seen) != 1 {
		t.Errorf("the model was asked %d times", len(s.seen))
	}
}

// TestACPParallelSessions runs prompts in several sessions of a connection at the same time.
func TestACPParallelSessions(t *testing.T) {
	const n = 8
	var all []drawbridge.ModelResponse
	for range n {
		all = append(all, says("begins", "wait"))
	}
	c, _ := acp(t, all...)
	var ids []string
	for range n {
		ids = append(ids, c.openACP())
	}
	for i, id := range ids {
		c.prompt(100+i, id, `{"type":"text","text":"p"}`)
	}
	for range n {
		c.until("begins")
	}
	for i := range n {
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, ids[i])
		if got := c.until(`"stopReason"`); !strings.Contains(got, fmt.Sprintf(`"id":%d,`, 100+i)) ||
			!strings.Contains(got, "cancelled") {
			t.Errorf("after the cancellation of session %d: %s", i, got)
		}
	}
}
