package vigil

import "sync"

// Listeners are those who want to hear of what happens. The zero value has none. Its methods may be called from several
// goroutines.
type Listeners[E any] struct {
	mu   sync.Mutex
	next int
	all  map[int]func(E)
}

// Add has f called with each event until cancel is called; once more, perhaps, while that is on its way.
func (l *Listeners[E]) Add(f func(E)) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int]func(E){}
	}
	id := l.next
	l.next++
	l.all[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, id)
	}
}

// Tell calls every listener with every event, without holding the lock.
func (l *Listeners[E]) Tell(events ...E) {
	if len(events) == 0 {
		return
	}
	l.mu.Lock()
	fs := make([]func(E), 0, len(l.all))
	for _, f := range l.all {
		fs = append(fs, f)
	}
	l.mu.Unlock()
	for _, e := range events {
		for _, f := range fs {
			f(e)
		}
	}
}
