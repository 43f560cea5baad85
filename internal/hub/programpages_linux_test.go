package hub

import (
	"os"
	"testing"
)

// TestReleaseProgramPages releases pages of a small program and goes on.
func TestReleaseProgramPages(t *testing.T) {
	before := readProcessTree().residentBytes(os.Getpid())
	releaseProgramPages()
	if now := readProcessTree().residentBytes(os.Getpid()); now >= before {
		t.Errorf("%d bytes are resident, and were %d", now, before)
	}
}
