package hub

import (
	"os"
	"testing"
)

// TestEaseOff gives text back, and goes on. It is here since a small program has none to give.
func TestEaseOff(t *testing.T) {
	before := readProcessTree().residentBytes(os.Getpid())
	releaseTextPages()
	if now := readProcessTree().residentBytes(os.Getpid()); now >= before {
		t.Errorf("%d bytes are resident, and were %d", now, before)
	}
}
