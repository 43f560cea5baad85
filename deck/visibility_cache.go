package deck

import (
	"encoding/binary"
	"hash/fnv"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxVisibilities is the maximum number of cached entries, one for each class of callers and server.
const maxVisibilities = 4096

// A visibilityCache caches which servers are visible to which classes of callers. A class contains the callers with the
// same key; see guardChain.callerClass.
type visibilityCache struct {
	mu  sync.Mutex
	all *simplelru.LRU[visibilityKey, bool]
}

func newVisibilityCache() *visibilityCache {
	all, err := simplelru.NewLRU[visibilityKey, bool](maxVisibilities, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return &visibilityCache{all: all}
}

type visibilityKey struct {
	class  string
	server drawbridge.ServerID
}

// getOrFind reports whether the server is visible to the callers of a class. If the answer is not in the cache, it
// calls find and caches the result.
func (k *visibilityCache) getOrFind(class string, server drawbridge.ServerID, find func() bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := visibilityKey{class, server}
	known, ok := k.all.Get(key)
	if !ok {
		known = find()
		k.all.Add(key, known)
	}
	return known
}

// listVersion returns a version for a list that is computed from lists with the versions in of. Callers of different
// classes get different versions, because different items may be hidden from them.
func (g *guardChain) listVersion(caller drawbridge.Caller, of ...uint64) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(g.callerClass(caller)))
	for _, version := range of {
		_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, version))
	}
	return sum.Sum64()
}
