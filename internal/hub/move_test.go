//go:build unix

package hub

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// TestAGuestWhoLendsLateHearsWhatWasSaid: that a guest is to move, or that the hub ends, counts for what it lends
// after that.
func TestAGuestWhoLendsLateHearsWhatWasSaid(t *testing.T) {
	h := aHub(t)
	enter := func() *attachedClient {
		t.Helper()
		_, theirs := socketPair(t)
		g, err := h.attachClient(t.Context(), h.o.newHello(wantAttach), &shimConn{conn: theirs.conn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.removeClient(g) })
		return g
	}
	first, second := enter(), enter()
	first.askToMove()
	late := new(passedConn)
	if h.setPassed(first, late); !late.moving.Load() || late.leaving.Load() {
		t.Errorf("moving %v, leaving %v", late.moving.Load(), late.leaving.Load())
	}
	h.closeClients(nil)
	late = new(passedConn)
	if h.setPassed(second, late); late.moving.Load() || !late.leaving.Load() {
		t.Errorf("at the end: moving %v, leaving %v", late.moving.Load(), late.leaving.Load())
	}
}

// TestAMoveWhileASessionIsTakenOver has a hub send a client on before it has taken the session over.
func TestAMoveWhileASessionIsTakenOver(t *testing.T) {
	c := newLender()
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`} {
		c.conv.clientLine([]byte(text))
	}
	delete(c.conv.pending, "1")
	var methods []string
	lendTo(t, c, "", func(t *testing.T, l *lineConn, _ *os.File, s *sharedRing) {
		methods = heardUpTo(t, l, mcp.MethodInitialize)
		for _, m := range []mcp.Message{{Method: noticeMove}, {ID: []byte(replayIDPrefix + `0"`),
			Result: []byte(`{}`)}} {
			if err := l.writeLine(m.Append(nil)); err != nil {
				t.Error(err)
			}
		}
		methods = append(methods, heardUpTo(t, l, noticeStart)...)
		s.putRecord(recAnswered, []byte("2"))
		s.putRecord(recWriting, []byte("{}\n"))
		s.putRecord(recWritten, nil)
		if err := l.writeLine(mcp.Message{Method: noticeReadRing}.Append(nil)); err != nil {
			t.Error(err)
		}
		_ = l.conn.SetReadDeadline(time.Now().Add(moveTime / 3))
		if _, err := l.in.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("the shim does not move on: %v", err)
		}
	})
	if want := []string{mcp.MethodInitialize, mcp.MethodToolsList, noticeStart}; !slices.Equal(methods, want) {
		t.Errorf("the shim said %q, want %q", methods, want)
	}
}

// TestAMoveWhileASessionIsPassedOn is the same for a client whose messages go through the shim.
func TestAMoveWhileASessionIsPassedOn(t *testing.T) {
	c := newRelayClient(io.Discard)
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`} {
		c.conv.clientLine([]byte(text))
	}
	delete(c.conv.pending, "1")
	ours, theirs := socketPair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.serveHub(ours) // the client is not gone
	}()
	defer func() { <-done }()
	defer theirs.conn.Close()
	heardUpTo(t, theirs, mcp.MethodInitialize)
	for _, m := range []mcp.Message{{Method: noticeMove}, {ID: []byte(replayIDPrefix + `0"`), Result: []byte(`{}`)}} {
		if err := theirs.writeLine(m.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	heardUpTo(t, theirs, mcp.MethodToolsList)
	if err := theirs.writeLine(mcp.Message{ID: []byte("2"), Result: []byte(`{}`)}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	_ = theirs.conn.SetReadDeadline(time.Now().Add(moveTime / 3))
	if _, err := theirs.in.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the shim does not move on: %v", err)
	}
}
