//go:build unix

package hub

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// TestALineThatIsCutOffIsNotPassedOn: a hub died in the midst of an answer, which is no message for the client.
func TestALineThatIsCutOffIsNotPassedOn(t *testing.T) {
	for _, cut := range []string{`{"jsonrpc":"2.0","id":7,"result":{"a`,
		`[{"jsonrpc":"2.0","id":7,"result":{}},{"json`} {
		var out bytes.Buffer
		c := newRelayClient(&out)
		c.conv.clientLine([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"n"}}`))
		ours, theirs := socketPair(t)
		if _, err := io.WriteString(theirs.conn, cut); err != nil {
			t.Fatal(err)
		}
		_ = theirs.conn.Close()
		_ = c.serveHub(ours) // the client is not gone
		if len(c.conv.pending) != 0 || strings.Contains(out.String(), cut) {
			t.Errorf("%d requests are open, the client heard %q", len(c.conv.pending), out.String())
		}
	}
}

// TestAHubMaySayMuch: what the hub made of an answer may be longer than what a server may say.
func TestAHubMaySayMuch(t *testing.T) {
	ours, theirs := socketPair(t)
	long := `{"result":"` + strings.Repeat("x", mcp.DefaultMaxLine) + `"}`
	go func() {
		_, l, err := readHello(theirs.conn)
		if err == nil {
			err = l.sendWelcome(1, nil)
		}
		if err == nil {
			err = l.writeLine([]byte(long))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	l, err := Options{}.newHello(wantAttach).send(ours.conn)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := l.in.Next(); err != nil || string(text) != long {
		t.Errorf("the shim heard %d bytes: %v", len(text), err)
	}
}

// TestANoticeBreaksNothingOff sends a client on that reads slowly: the hub has its word behind what is being said.
func TestANoticeBreaksNothingOff(t *testing.T) {
	ours, theirs := socketPair(t)
	v := &shimConn{conn: theirs.conn}
	long := `{"result":"` + strings.Repeat("x", 8<<20) + `"}`
	written := make(chan error, 1)
	go func() {
		_, err := v.Write([]byte(long + "\n"))
		if err != nil {
			_ = theirs.conn.Close() // nothing more comes
		}
		written <- err
	}()
	for v.mu.TryLock() { // it has begun when the lock is held, and cannot end: nobody reads
		v.mu.Unlock()
		runtime.Gosched()
	}
	v.sendNotice(noticeMove)
	for _, want := range []string{long, string(mcp.Message{Method: noticeMove}.Append(nil))} {
		if text, err := ours.in.Next(); err != nil || string(text) != want {
			t.Errorf("the shim heard %d bytes, want %d: %v", len(text), len(want), err)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestTheLastHubOfAClientDies: one that has said all, and whose messages pass through the shim, is answered all the
// same.
func TestTheLastHubOfAClientDies(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}` + "\n")
	err := newRelayClient(&out).serve(t.Context(), in, func(context.Context) (*lineConn, error) {
		ours, theirs := socketPair(t)
		go func() {
			_, _ = io.Copy(io.Discard, theirs.conn) // the input ends
			_ = theirs.conn.Close()
		}()
		return ours, nil
	})
	if err != nil || strings.Count(out.String(), `"id":7,"error":`) != 1 {
		t.Errorf("the client heard %q: %v", out.String(), err)
	}
}
