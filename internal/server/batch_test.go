package server

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// A batchDeck has tools that wait: "wait" until it is cancelled, "ask" for the answer to a question, "after" until
// "ask" is done.
func batchDeck() (d *fakeDeck, causes chan string) {
	d = newFakeDeck()
	causes = make(chan string, 1)
	asked := make(chan struct{})
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		switch rawjson.GetString(call.Params, "name") {
		case "wait":
			<-ctx.Done()
			causes <- context.Cause(ctx).Error()
			return drawbridge.Result{}, ctx.Err()
		case "ask":
			defer close(asked)
			answer, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
			return drawbridge.Result{Raw: answer}, err
		case "after":
			<-asked
		}
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	return d, causes
}

// These batches would never end if their messages were taken one after the other.
const (
	cancelBatch = `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}},` +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"changed my mind"}},` +
		`{"jsonrpc":"2.0","id":2,"method":"ping"}]`
	askBatch    = `[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask"}},{"jsonrpc":"2.0","id":4,"method":"ping"}]`
	answerBatch = `[{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"after"}},{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}]`

	rootsQuestion = `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`
	pong2         = `{"jsonrpc":"2.0","id":2,"result":{}}`
	asked3        = `{"jsonrpc":"2.0","id":3,"result":{"roots":[]}}`
	pong4         = `{"jsonrpc":"2.0","id":4,"result":{}}`
	after5        = `{"jsonrpc":"2.0","id":5,"result":{"content":[]}}`
)

// TestBatchSideBySide: a message of a batch may cancel one before it, or answer what one before it has asked.
func TestBatchSideBySide(t *testing.T) {
	d, causes := batchDeck()
	c := connect(t, serveHTTP(t, d, Options{}), "2025-03-26", `{"roots":{}}`)
	want := `[{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Cancelled"}},` + pong2 + `]`
	if status, body := c.do(cancelBatch); status != 200 || body != want {
		t.Errorf("got %d %s, want %s", status, body, want)
	}
	if cause := <-causes; cause != "changed my mind" {
		t.Errorf("the call ended because %q", cause)
	}
	asking := c.post(askBatch)
	defer asking.Body.Close()
	events := mcp.NewSSEReader(asking.Body, 0)
	if diff := cmp.Diff(rootsQuestion, next(t, events)); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}
	if _, body := c.do(answerBatch); body != "["+after5+"]" {
		t.Errorf("the batch with the answer got %s", body)
	}
	for _, want := range []string{asked3, pong4} {
		if diff := cmp.Diff(want, next(t, events)); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
	}
	if rest, err := events.Next(); err != io.EOF {
		t.Errorf("then came %v, %v", rest, err)
	}
}

// TestStdioBatchSideBySide is the same on pipes, where what is cancelled has no answer.
func TestStdioBatchSideBySide(t *testing.T) {
	d, causes := batchDeck()
	c := dial(t, d)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}}}}`)
	if _, err := c.lines.Next(); err != nil {
		t.Fatal(err)
	}
	c.send(cancelBatch)
	c.want(`[` + pong2 + `]`)
	if cause := <-causes; cause != "changed my mind" {
		t.Errorf("the call ended because %q", cause)
	}
	c.send(askBatch)
	c.want(rootsQuestion)
	c.send(answerBatch)
	want := map[string]bool{`[` + asked3 + `,` + pong4 + `]`: true, `[` + after5 + `]`: true}
	for range 2 {
		got, err := c.lines.Next()
		if err != nil || !want[string(got)] {
			t.Fatalf("read %s, %v", got, err)
		}
		delete(want, string(got))
	}
}
