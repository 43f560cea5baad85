//go:build unix

package hub

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// TestAGuestWhoLendsLateHearsWhatWasSaid: that a guest is to move, or that the hub ends, counts for what it lends after that.
func TestAGuestWhoLendsLateHearsWhatWasSaid(t *testing.T) {
	h := aHub(t)
	enter := func() *guest {
		t.Helper()
		_, theirs := socketPair(t)
		g, err := h.enter(t.Context(), h.o.hello(wantAttach), &voice{conn: theirs.conn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.leave(g) })
		return g
	}
	first, second := enter(), enter()
	first.move()
	late := new(lent)
	if h.lends(first, late); !late.moving.Load() || late.leaving.Load() {
		t.Errorf("moving %v, leaving %v", late.moving.Load(), late.leaving.Load())
	}
	h.close(nil)
	late = new(lent)
	if h.lends(second, late); late.moving.Load() || !late.leaving.Load() {
		t.Errorf("at the end: moving %v, leaving %v", late.moving.Load(), late.leaving.Load())
	}
}

// TestAMoveWhileASessionIsTakenOver has a hub send a client on before it has taken the session over.
func TestAMoveWhileASessionIsTakenOver(t *testing.T) {
	c := newLender()
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`} {
		c.talk.said([]byte(text))
	}
	delete(c.talk.flights, "1")
	var methods []string
	lendTo(t, c, "", func(t *testing.T, l *line, _ *os.File, s *slate) {
		methods = heardUpTo(t, l, wire.MethodInitialize)
		for _, m := range []wire.Message{{Method: noteMove}, {ID: []byte(replayPrefix + `0"`), Result: []byte(`{}`)}} {
			if err := l.write(m.Append(nil)); err != nil {
				t.Error(err)
			}
		}
		methods = append(methods, heardUpTo(t, l, noteGo)...)
		s.put(noteAnswered, []byte("2"))
		s.put(noteSaying, []byte("{}\n"))
		s.put(noteEnded, nil)
		if err := l.write(wire.Message{Method: noteLook}.Append(nil)); err != nil {
			t.Error(err)
		}
		_ = l.conn.SetReadDeadline(time.Now().Add(moveTime / 3))
		if _, err := l.in.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("the shim does not move on: %v", err)
		}
	})
	if want := []string{wire.MethodInitialize, wire.MethodToolsList, noteGo}; !slices.Equal(methods, want) {
		t.Errorf("the shim said %q, want %q", methods, want)
	}
}

// TestAMoveWhileASessionIsPassedOn is the same for a client whose messages go through the shim.
func TestAMoveWhileASessionIsPassedOn(t *testing.T) {
	c := newClient(io.Discard)
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`} {
		c.talk.said([]byte(text))
	}
	delete(c.talk.flights, "1")
	ours, theirs := socketPair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.attached(ours) // the client is not gone
	}()
	defer func() { <-done }()
	defer theirs.conn.Close()
	heardUpTo(t, theirs, wire.MethodInitialize)
	for _, m := range []wire.Message{{Method: noteMove}, {ID: []byte(replayPrefix + `0"`), Result: []byte(`{}`)}} {
		if err := theirs.write(m.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	heardUpTo(t, theirs, wire.MethodToolsList)
	if err := theirs.write(wire.Message{ID: []byte("2"), Result: []byte(`{}`)}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	_ = theirs.conn.SetReadDeadline(time.Now().Add(moveTime / 3))
	if _, err := theirs.in.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the shim does not move on: %v", err)
	}
}
