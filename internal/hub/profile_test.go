//go:build unix

package hub

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

// TestProfilesOfTheHub takes each profile on the control socket, and a wrong one.
func TestProfilesOfTheHub(t *testing.T) {
	s, l := aLease(t)
	err := runHub(t.Context(), s.o, l, func(h *hub) {
		defer h.release()
		stacks, err := ReadProfile(t.Context(), s.o, GoroutineProfile, 0)
		if err != nil || !bytes.Contains(stacks, []byte("hub.(*hub).accept")) {
			t.Errorf("stacks: %.200s, %v", stacks, err)
		}
		for kind, takes := range map[ProfileKind]time.Duration{HeapProfile: 0, CPUProfile: 50 * time.Millisecond} {
			zip, err := ReadProfile(t.Context(), s.o, kind, takes)
			if err != nil || !bytes.HasPrefix(zip, []byte("\x1f\x8b")) {
				t.Errorf("%s: %d bytes, %v", kind, len(zip), err)
			}
		}
		if _, err := ReadProfile(t.Context(), s.o, "secrets", 0); err == nil ||
			err.Error() != `the hub has no profile "secrets"` {
			t.Errorf("a wrong kind: %v", err)
		}
		if _, err := ReadProfile(t.Context(), s.o, CPUProfile, time.Hour); err == nil ||
			err.Error() != "a CPU profile takes up to 1m0s" {
			t.Errorf("an hour: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := ReadProfile(ctx, s.o, CPUProfile, maxProfileTime); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an end before its time: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
