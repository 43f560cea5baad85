package offer

import (
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// Turns has what is done about one server done one after the other. The zero value is ready.
type Turns struct {
	mu sync.Mutex
	of map[drawbridge.ServerID]*sync.Mutex
}

// Take waits for the server's turn, which lasts until done is called.
func (t *Turns) Take(id drawbridge.ServerID) (done func()) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[drawbridge.ServerID]*sync.Mutex{}
	}
	turn := t.of[id]
	if turn == nil {
		turn = &sync.Mutex{}
		t.of[id] = turn
	}
	t.mu.Unlock()
	turn.Lock()
	return turn.Unlock
}
