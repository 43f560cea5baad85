package server

import "sync"

// A closeGate admits work until it is shut. shut then waits until the admitted work has ended. The zero value is open.
type closeGate struct{ mu sync.RWMutex }

// enter reports whether work may begin. If so, the caller must call leave when the work has ended.
func (g *closeGate) enter() bool { return g.mu.TryRLock() }

// leave marks the end of work that enter admitted.
func (g *closeGate) leave() { g.mu.RUnlock() }

// shut closes the gate and waits until all admitted work has ended. It must be called only once.
func (g *closeGate) shut() { g.mu.Lock() }

// A principalLimiter limits the number of requests in progress of each principal. max must be set before the first
// request. Its methods may be called from several goroutines.
type principalLimiter struct {
	// max is the maximum number of requests in progress of one principal.
	max int

	mu         sync.Mutex
	inProgress map[string]int
}

// acquire adds a request of a principal to the requests in progress, until leave is called. leave must be called once.
// acquire returns false if the principal already has max requests in progress.
func (t *principalLimiter) acquire(principal string) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inProgress[principal] >= t.max {
		return nil, false
	}
	if t.inProgress == nil {
		t.inProgress = map[string]int{}
	}
	t.inProgress[principal]++
	return func() { t.release(principal) }, true
}

func (t *principalLimiter) release(principal string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inProgress[principal]--; t.inProgress[principal] == 0 {
		delete(t.inProgress, principal)
	}
}
