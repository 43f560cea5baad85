//go:build unix

package hub

import (
	"errors"
	"testing"
)

// TestAHubThatEndsWithoutAnAnswer: what a hub did not say is not taken for an answer.
func TestAHubThatEndsWithoutAnAnswer(t *testing.T) {
	s, l := aLease(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			conn, err := l.listener.AcceptUnix()
			if err != nil {
				return
			}
			if _, line, err := readHello(conn); err == nil {
				_ = line.sendWelcome(1, nil)
			}
			_ = conn.Close()
		}
	}()
	if state, err := ReadState(s.o); !errors.Is(err, ErrNoHub) {
		t.Errorf("the state: %+v, %v", state, err)
	}
	if did, err := Reload(s.o); !errors.Is(err, ErrNoHub) {
		t.Errorf("the reload: %+v, %v", did, err)
	}
	l.release()
	<-done
}

// TestWhoeverComesFirstIsNotTheLast: a hub lives on after an early guest that is gone before the hub's own client
// holds it.
func TestWhoeverComesFirstIsNotTheLast(t *testing.T) {
	s, l := aLease(t)
	err := runHub(t.Context(), s.o, l, func(h *hub) {
		if _, err := ReadState(s.o); err != nil {
			t.Error(err)
		}
		h.serving.Wait() // the guest is gone
		if !h.retain() {
			t.Error("the hub ended with its first guest")
			return
		}
		h.release()
		h.release()
	})
	if err != nil {
		t.Fatal(err)
	}
}
