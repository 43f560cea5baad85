package server

import "sync"

// A closeGate admits work until it is shut. The zero value is open.
type closeGate struct{ mu sync.RWMutex }

// enter reports whether work may begin. The caller then calls leave at its end.
func (g *closeGate) enter() bool { return g.mu.TryRLock() }

// leave ends work that enter admitted.
func (g *closeGate) leave() { g.mu.RUnlock() }

// shut admits no further work, and waits for the work inside. It is called once.
func (g *closeGate) shut() { g.mu.Lock() }

// A principalLimiter bounds the requests in progress for each principal. max is set before the first request; then it
// may be used from several goroutines.
type principalLimiter struct {
	// max is the largest number of requests of one principal in progress.
	max int

	mu         sync.Mutex
	inProgress map[string]int
}

// acquire admits one more request of a principal until leave is called, once. It reports false at the limit.
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
