package gate

import (
	"encoding/binary"
	"hash/fnv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// mostKnown bounds how much of what classes of callers know is remembered.
const mostKnown = 4096

// Known remembers which servers callers of a class may know of. The zero value knows nothing yet.
type Known struct {
	mu  sync.Mutex
	all map[knowing]bool
}

type knowing struct {
	class  string
	server drawbridge.ServerID
}

// Says gives what is remembered of a class and a server, or else what find says.
func (k *Known) Says(class string, server drawbridge.ServerID, find func() bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := knowing{class, server}
	known, ok := k.all[key]
	if !ok {
		known = find()
		if k.all == nil || len(k.all) >= mostKnown {
			k.all = map[knowing]bool{}
		}
		k.all[key] = known
	}
	return known
}

// Version tells the lists apart that callers of different classes are given of lists with these versions.
func (g *Gate) Version(caller drawbridge.Caller, of ...uint64) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(g.Class(caller)))
	for _, version := range of {
		_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, version))
	}
	return sum.Sum64()
}
