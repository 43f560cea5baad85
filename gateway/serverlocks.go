package deck

import (
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// serverLocks has what is done about one server done one after the other. The zero value is ready.
type serverLocks struct {
	mu       sync.Mutex
	byServer map[drawbridge.ServerID]*sync.Mutex
}

// lock waits for the server's turn, which lasts until done is called.
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
