package ear

import "github.com/drawbridge-mcp/drawbridge"

// Wishes are what several want watched. The zero value is nothing. Its methods may not be called from several goroutines at once.
type Wishes[K comparable] struct {
	by  map[K]drawbridge.Watched
	all drawbridge.Watched
}

// Set says what one of them wants watched, all of it.
func (w *Wishes[K]) Set(who K, what drawbridge.Watched) {
	if w.by == nil {
		w.by = map[K]drawbridge.Watched{}
	}
	if w.by[who] = what; what.None() {
		delete(w.by, who)
	}
	w.all = drawbridge.Watched{}
	for _, other := range w.by {
		more := other.Without(w.all)
		w.all.URIs = append(w.all.URIs, more.URIs...)
		w.all.Tasks = append(w.all.Tasks, more.Tasks...)
	}
}

// Of gives what one of them wants watched.
func (w *Wishes[K]) Of(who K) drawbridge.Watched { return w.by[who] }

// All gives what they want together.
func (w *Wishes[K]) All() drawbridge.Watched { return w.all }
