package hub

import (
	"os"
	"testing"
)

// TestEaseOff gives text back, and goes on.
func TestEaseOff(t *testing.T) {
	before := processes().memory(os.Getpid())
	easeOff()
	if now := processes().memory(os.Getpid()); now >= before {
		t.Errorf("%d bytes are resident, and were %d", now, before)
	}
}
