package cards

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	lru "github.com/hashicorp/golang-lru/v2"
)

// maxStates is the maximum number of values in a stateTable. stateLifetime is how long a value is stored after its last
// use.
const (
	maxStates     = 1000
	stateLifetime = 24 * time.Hour
)

// A stateTable stores a value for each run, see [deck.RunOf]. After stateLifetime without a use, the next use of a run
// gets a new zero value. If there are more than maxStates values, the least recently used one is deleted.
type stateTable[T any] struct {
	mu     sync.Mutex
	states *lru.Cache[string, *runState[T]]
	now    func() time.Time
}

type runState[T any] struct {
	mu    sync.Mutex // held while a call uses the value
	value T
	used  time.Time
}

func newStateTable[T any]() *stateTable[T] {
	states, err := lru.New[string, *runState[T]](maxStates)
	if err != nil {
		panic(err) // the size is positive
	}
	return &stateTable[T]{states: states, now: time.Now}
}

// use calls the function do with the value of the caller's run. Only one such call runs at a time for each value. A run
// can have several values, which name distinguishes; name may be empty.
func (t *stateTable[T]) use(caller drawbridge.Caller, name string, do func(*T)) {
	key, now := deck.RunOf(caller)+"\x00"+name, t.now()
	t.mu.Lock()
	state, ok := t.states.Get(key)
	if !ok || now.Sub(state.used) > stateLifetime {
		state = &runState[T]{}
		t.states.Add(key, state)
	}
	state.used = now
	t.mu.Unlock()
	state.mu.Lock()
	defer state.mu.Unlock()
	do(&state.value)
}

// resolvePath returns the absolute path for a path that a caller sent, see [deck.Context.ResolvePath].
func resolvePath(c deck.Context, caller drawbridge.Caller, path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", ToolError("The path contains a NUL character.")
	}
	return c.ResolvePath(caller, path)
}

// relativePath returns a path as it is shown to a caller: relative to the caller's directory if the path is below that
// directory.
func relativePath(c deck.Context, caller drawbridge.Caller, path string) string {
	dir, err := c.WorkingDir(caller)
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return rel
}
