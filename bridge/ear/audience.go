package ear

import (
	"slices"
	"sync"
)

// An Audience is who is told what a server says. The zero value is nobody. Its methods may be called from several goroutines.
type Audience[K comparable] struct {
	mu  sync.Mutex
	all []K
}

// Add adds one.
func (a *Audience[K]) Add(who K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, who)
}

// Remove takes one away, and says whether nobody is left.
func (a *Audience[K]) Remove(who K) (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(other K) bool { return other == who })
	return len(a.all) == 0
}

// All gives them in the order in which they came, in a slice of the caller's own.
func (a *Audience[K]) All() []K {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}
