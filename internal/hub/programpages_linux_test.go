package hub

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// TestReleaseProgramPages releases pages of a small program and goes on.
func TestReleaseProgramPages(t *testing.T) {
	before := readProcessTree().residentBytes(os.Getpid())
	process.ReleaseProgramPages()
	if now := readProcessTree().residentBytes(os.Getpid()); now >= before {
		t.Errorf("%d bytes are resident, and were %d", now, before)
	}
}
