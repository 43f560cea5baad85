package deck

import (
	"encoding/binary"
	"hash/fnv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxVisibilities bounds how much of what classes of callers know is remembered.
const maxVisibilities = 4096

// visibilityCache remembers which servers callers of a class may know of. The zero value knows nothing yet.
type visibilityCache struct {
	mu  sync.Mutex
	all map[visibilityKey]bool
}

type visibilityKey struct {
	class  string
	server drawbridge.ServerID
}

// getOrFind gives what is remembered of a class and a server, or else what find says.
func (k *visibilityCache) getOrFind(class string, server drawbridge.ServerID, find func() bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := visibilityKey{class, server}
	known, ok := k.all[key]
	if !ok {
		known = find()
		if k.all == nil || len(k.all) >= maxVisibilities {
			k.all = map[visibilityKey]bool{}
		}
		k.all[key] = known
	}
	return known
}

// listVersion tells the lists apart that callers of different classes are given of lists with these versions.
func (g *guardChain) listVersion(caller drawbridge.Caller, of ...uint64) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(g.callerClass(caller)))
	for _, version := range of {
		_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, version))
	}
	return sum.Sum64()
}
