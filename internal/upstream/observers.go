package upstream

import (
	"slices"
	"sync"
)

// An observerList is who is told what a server says. The zero value is nobody. Its methods may be called from several
// goroutines.
type observerList[K comparable] struct {
	mu  sync.Mutex
	all []K
}

// add adds one.
func (a *observerList[K]) add(who K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, who)
}

// remove takes one away, and says whether nobody is left.
func (a *observerList[K]) remove(who K) (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(other K) bool { return other == who })
	return len(a.all) == 0
}

// snapshot gives them in the order in which they came, in a slice of the caller's own.
func (a *observerList[K]) snapshot() []K {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}
