package deck

import (
	"encoding/binary"
	"hash/fnv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxVisibilities bounds the number of remembered entries.
const maxVisibilities = 4096

// A visibilityCache remembers which servers are visible to callers of a class. The zero value is empty.
type visibilityCache struct {
	mu  sync.Mutex
	all map[visibilityKey]bool
}

type visibilityKey struct {
	class  string
	server drawbridge.ServerID
}

// getOrFind returns the remembered entry for a class and a server, or else the result of find.
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

// listVersion returns a version for lists made of lists with these versions. It differs between caller classes.
func (g *guardChain) listVersion(caller drawbridge.Caller, of ...uint64) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(g.callerClass(caller)))
	for _, version := range of {
		_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, version))
	}
	return sum.Sum64()
}
