package agent

import "sync"

// An emitter passes events to a function, one at a time and in order. Events may be emitted from any goroutine, and by
// the function itself.
type emitter struct {
	on func(Event)

	// mu guards the fields below. draining is set while a goroutine passes on the waiting events; then the channel is
	// closed when it ends. closed reports that no further events are passed on.
	mu       sync.Mutex
	waiting  []Event
	draining chan struct{}
	closed   bool
}

// emit passes on an event. If another goroutine is passing on events, emit leaves the event to it.
func (m *emitter) emit(e Event) {
	if m.on == nil {
		return
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.enqueue(e)
	if m.draining != nil {
		m.mu.Unlock()
		return
	}
	m.draining = make(chan struct{})
	for len(m.waiting) > 0 {
		next := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.mu.Unlock()
		m.on(next)
		m.mu.Lock()
	}
	close(m.draining)
	m.waiting, m.draining = nil, nil
	m.mu.Unlock()
}

// close returns after all events were passed on. Later events, such as the progress of a call that does not end with its
// context, are dropped.
func (m *emitter) close() {
	m.mu.Lock()
	m.closed = true
	draining := m.draining
	m.mu.Unlock()
	if draining != nil {
		<-draining
	}
}

// enqueue adds an event. A newer progress of the same call replaces a waiting one, so that a slow receiver does not
// make the queue grow. The caller holds mu.
func (m *emitter) enqueue(e Event) {
	if n := len(m.waiting); e.Kind == ToolProgress && n > 0 {
		last := &m.waiting[n-1]
		if last.Kind == ToolProgress && last.Agent == e.Agent && last.Call.ID == e.Call.ID {
			*last = e
			return
		}
	}
	m.waiting = append(m.waiting, e)
}
