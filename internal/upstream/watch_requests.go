package upstream

import (
	"github.com/drawbridge-mcp/drawbridge"
)

// watchRequests stores the watch sets of several owners. The zero value is empty. Its methods must not be called
// concurrently.
type watchRequests[K comparable] struct {
	by  map[K]drawbridge.WatchSet
	all drawbridge.WatchSet
}

// set replaces the watch set of an owner.
func (w *watchRequests[K]) set(who K, what drawbridge.WatchSet) {
	if w.by == nil {
		w.by = map[K]drawbridge.WatchSet{}
	}
	if w.by[who] = what; what.IsEmpty() {
		delete(w.by, who)
	}
	w.all = drawbridge.WatchSet{}
	for _, other := range w.by {
		more := other.Without(w.all)
		w.all.URIs = append(w.all.URIs, more.URIs...)
		w.all.Tasks = append(w.all.Tasks, more.Tasks...)
	}
}

// forOwner returns the watch set of an owner.
func (w *watchRequests[K]) forOwner(who K) drawbridge.WatchSet { return w.by[who] }

// union returns the union of all watch sets.
func (w *watchRequests[K]) union() drawbridge.WatchSet { return w.all }
