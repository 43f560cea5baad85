package hub

import (
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/hub/resident"
)

// TestEaseOff gives text back, and goes on. It is here since a small program has none to give.
func TestEaseOff(t *testing.T) {
	before := resident.Processes().Memory(os.Getpid())
	resident.EaseOff()
	if now := resident.Processes().Memory(os.Getpid()); now >= before {
		t.Errorf("%d bytes are resident, and were %d", now, before)
	}
}
