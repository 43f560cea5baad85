package upstream

import (
	"github.com/drawbridge-mcp/drawbridge"
)

// watchRequests are what several want watched. The zero value is nothing. Its methods may not be called from several
// goroutines at once.
type watchRequests[K comparable] struct {
	by  map[K]drawbridge.WatchSet
	all drawbridge.WatchSet
}

// set says what one of them wants watched, all of it.
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

// forOwner gives what one of them wants watched.
func (w *watchRequests[K]) forOwner(who K) drawbridge.WatchSet { return w.by[who] }

// union gives what they want together.
func (w *watchRequests[K]) union() drawbridge.WatchSet { return w.all }
