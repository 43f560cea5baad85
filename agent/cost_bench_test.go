//go:build bench

package agent_test

import (
	"testing"
	"time"
)

// TestTimeOfATurn holds what a turn with 200 tools costs the session itself.
func TestTimeOfATurn(t *testing.T) {
	const most = 2 * time.Millisecond
	r := testing.Benchmark(BenchmarkTurn)
	each := r.T / time.Duration(r.N)
	t.Logf("%d turns, %s each, %d bytes", r.N, each, r.AllocedBytesPerOp())
	if each > most {
		t.Errorf("a turn costs %s, want at most %s", each, most)
	}
}
