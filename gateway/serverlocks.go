package gateway

import (
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// serverLocks holds one lock for each server. The zero value is ready to use.
type serverLocks struct {
	mu       sync.Mutex
	byServer map[drawbridge.ServerID]*sync.Mutex
}

// lock acquires the lock of a server; done releases it.
func (t *serverLocks) lock(id drawbridge.ServerID) (done func()) {
	t.mu.Lock()
	if t.byServer == nil {
		t.byServer = map[drawbridge.ServerID]*sync.Mutex{}
	}
	turn := t.byServer[id]
	if turn == nil {
		turn = &sync.Mutex{}
		t.byServer[id] = turn
	}
	t.mu.Unlock()
	turn.Lock()
	return turn.Unlock
}
