package hub

import (
	"os"
	"testing"
)

// TestEaseOff releases text pages of a small program and goes on.
func TestEaseOff(t *testing.T) {
	before := readProcessTree().residentBytes(os.Getpid())
	releaseTextPages()
	if now := readProcessTree().residentBytes(os.Getpid()); now >= before {
		t.Errorf("%d bytes are resident, and were %d", now, before)
	}
}
