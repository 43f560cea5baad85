package deck

import "sync"

// eventListeners are those who want to hear of what happens. The zero value has none. Its methods may be called from
// several goroutines.
type eventListeners[E any] struct {
	mu   sync.Mutex
	next int
	byID map[int]func(E)
}

// Add has f called with each event until cancel is called; once more, perhaps, while that is on its way.
func (l *eventListeners[E]) Add(f func(E)) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[int]func(E){}
	}
	id := l.next
	l.next++
	l.byID[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.byID, id)
	}
}

// notify calls every listener with every event, without holding the lock.
func (l *eventListeners[E]) notify(events ...E) {
	if len(events) == 0 {
		return
	}
	l.mu.Lock()
	fs := make([]func(E), 0, len(l.byID))
	for _, f := range l.byID {
		fs = append(fs, f)
	}
	l.mu.Unlock()
	for _, e := range events {
		for _, f := range fs {
			f(e)
		}
	}
}
