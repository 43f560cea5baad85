package server

import "sync"

// A closeGate lets work in until it is shut. The zero value is open.
type closeGate struct{ mu sync.RWMutex }

// enter says whether work may begin, which ends with Leave.
func (g *closeGate) enter() bool { return g.mu.TryRLock() }

// leave ends work that was let in.
func (g *closeGate) leave() { g.mu.RUnlock() }

// shut lets none in any more, and waits for what is inside. It is called once.
func (g *closeGate) shut() { g.mu.Lock() }

// A principalLimiter lets so many of one principal's requests be in progress at a time, and takes no notice of the
// others. Most is to be set before the first of them; then it may be used from several goroutines.
type principalLimiter struct {
	// max is how many of one principal's may be inside.
	max int

	mu         sync.Mutex
	inProgress map[string]int
}

// acquire lets one more request of a principal's in, until leave is called, which is once. It says false where there
// are Most.
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
