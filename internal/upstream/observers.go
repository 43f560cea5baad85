package upstream

import (
	"slices"
	"sync"
)

// An observerList is a list of observers. The zero value is empty. Its methods may be called from several goroutines.
type observerList[K comparable] struct {
	mu  sync.Mutex
	all []K
}

// add appends an observer.
func (a *observerList[K]) add(who K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, who)
}

// remove deletes an observer and reports whether the list is now empty.
func (a *observerList[K]) remove(who K) (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(other K) bool { return other == who })
	return len(a.all) == 0
}

// snapshot returns a copy of the list, in the order of add.
func (a *observerList[K]) snapshot() []K {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}
