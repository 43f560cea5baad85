package agent

import "sync"

// An emitter passes events to a function, one at a time and in order. Events may be emitted from any goroutine, and by
// the function itself.
type emitter struct {
	on func(Event)

	// mu guards the fields below. draining is set while a goroutine passes on the waiting events.
	mu       sync.Mutex
	waiting  []Event
	draining bool
}

// emit passes on an event. If another goroutine is passing on events, emit leaves the event to it.
func (m *emitter) emit(e Event) {
	if m.on == nil {
		return
	}
	m.mu.Lock()
	m.enqueue(e)
	if m.draining {
		m.mu.Unlock()
		return
	}
	m.draining = true
	for len(m.waiting) > 0 {
		next := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.mu.Unlock()
		m.on(next)
		m.mu.Lock()
	}
	m.waiting, m.draining = nil, false
	m.mu.Unlock()
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
