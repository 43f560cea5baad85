// Package entry bounds what a door lets in before anybody has looked at it: work once there is to be none, requests of one
// principal beside each other, and the bytes of a request.
//
// It promises that what was let in is counted until it has left, and that nothing waits to be let in.
package entry

import "sync"

// A Gate lets work in until it is shut. The zero value is open.
type Gate struct{ mu sync.RWMutex }

// Enter says whether work may begin, which ends with Leave.
func (g *Gate) Enter() bool { return g.mu.TryRLock() }

// Leave ends work that was let in.
func (g *Gate) Leave() { g.mu.RUnlock() }

// Shut lets none in any more, and waits for what is inside. It is called once.
func (g *Gate) Shut() { g.mu.Lock() }

// A Turnstile lets so many of one principal's requests be in progress at a time, and takes no notice of the others. Most is to be set
// before the first of them; then it may be used from several goroutines.
type Turnstile struct {
	// Most is how many of one principal's may be inside.
	Most int

	mu     sync.Mutex
	inside map[string]int
}

// Enter lets one more request of a principal's in, until leave is called, which is once. It says false where there are Most.
func (t *Turnstile) Enter(principal string) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside[principal] >= t.Most {
		return nil, false
	}
	if t.inside == nil {
		t.inside = map[string]int{}
	}
	t.inside[principal]++
	return func() { t.leave(principal) }, true
}

func (t *Turnstile) leave(principal string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside[principal]--; t.inside[principal] == 0 {
		delete(t.inside, principal)
	}
}
