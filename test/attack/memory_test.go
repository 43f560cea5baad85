//go:build !nomcp

package attack

import (
	"runtime"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestMemoryIsBounded has servers say much more than anybody would keep. The bounds are generous: several times the
// largest message that may be, and little when it is over: a definition is kept. (bench has the line of a gigabyte,
// and the memory of the whole process.)
func TestMemoryIsBounded(t *testing.T) {
	const mega = 1 << 20
	for _, tt := range []struct {
		does   mcptest.Misbehaviour
		size   int
		during uint64
	}{
		{mcptest.HugeLine, 40 * mega, 200 * mega},
		{mcptest.Flood, 1_000, 50 * mega},
		{mcptest.Noise, 2_000, 50 * mega},
		{mcptest.StderrFlood, 4 * mega, 50 * mega},
		{mcptest.ManyTools, 3_000, 100 * mega},
		{mcptest.HugeDefinition, mega, 100 * mega},
	} {
		t.Run(string(tt.does), func(t *testing.T) {
			bad := mcptest.NewHostileServer(t, tt.does, tt.size)
			h := open(t)
			before := settled()
			peak := watch(before)
			row := bad.Stdio("bad")
			row.Timeout = patience
			if err := h.AddServer(t.Context(), row); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Mount(t.Context(), "bad"); err != nil {
				t.Error(err)
			}
			_, _ = h.call(t.Context(), `{"name":"bad__echo"}`)
			if grew := peak(); grew > tt.during {
				t.Errorf("%d MiB more were in use while it lasted, want at most %d", grew/mega, tt.during/mega)
			}
			h.stop()
			if after := settled(); after > before+32*mega {
				t.Errorf("%d MiB are kept", (after-before)/mega)
			}
		})
	}
}

// settled is what is in use when everything was collected that nobody holds.
func settled() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// watch looks at what is in use, until peak is called: that is the most of it beyond before.
func watch(before uint64) (peak func() uint64) {
	over, most := make(chan struct{}), make(chan uint64)
	go func() {
		var m runtime.MemStats
		seen := before
		for {
			runtime.ReadMemStats(&m)
			seen = max(seen, m.HeapAlloc)
			select {
			case <-over:
				most <- seen
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(over); return <-most - before }
}
