package deck

import "sync"

// eventListeners is a set of functions, the listeners, that are called with each event. The zero value is empty and
// ready to use. It is safe for concurrent use.
type eventListeners[E any] struct {
	mu   sync.Mutex
	next int
	byID map[int]func(E)
}

// Add adds the listener f, which is called with every event until cancel is called. Even after cancel has returned, f
// may be called with an event that was sent before.
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

// notify calls every listener with each of the events. It does not hold mu during these calls, so a listener may call
// Add or cancel.
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
