package seal

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// Held remembers which tasks were given to whom. Nothing is found by it: a ticket proves itself. But where several
// principals meet at one server, what the server says of its tasks outside an answer to one caller (a list, a
// notification) is shown to those only who are known to have the task: because they got it here, or came with its ticket.
// What is not remembered is not shown. The zero value remembers nothing. Its methods may be called from several goroutines.
type Held struct {
	mu sync.Mutex
	// holders has the tickets of each task, by principal.
	holders map[Ticket]map[string]string
	// order has each principal's tasks, the oldest first; all counts them.
	order map[string][]Ticket
	all   int
}

const (
	// maxHeld is how many tasks are remembered for one principal, maxHeldAll for all.
	maxHeld    = 4096
	maxHeldAll = 65536
)

// Add remembers that a principal has a task under this ticket. The oldest task of the principal makes room for it, or of
// the principal who has most.
func (h *Held) Add(principal string, t Ticket, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holders == nil {
		h.holders, h.order = map[Ticket]map[string]string{}, map[string][]Ticket{}
	}
	if _, known := h.holders[t][principal]; known {
		h.holders[t][principal] = text
		return
	}
	switch {
	case len(h.order[principal]) >= maxHeld:
		h.drop(principal)
	case h.all >= maxHeldAll:
		h.drop(h.richest())
	}
	if h.holders[t] == nil {
		h.holders[t] = map[string]string{}
	}
	h.holders[t][principal] = text
	h.order[principal] = append(h.order[principal], t)
	h.all++
}

// drop forgets a principal's oldest task. The lock is held.
func (h *Held) drop(principal string) {
	t := h.order[principal][0]
	if h.order[principal] = h.order[principal][1:]; len(h.order[principal]) == 0 {
		delete(h.order, principal)
	}
	if delete(h.holders[t], principal); len(h.holders[t]) == 0 {
		delete(h.holders, t)
	}
	h.all--
}

func (h *Held) richest() (principal string) {
	for p, tasks := range h.order {
		if len(tasks) > len(h.order[principal]) {
			principal = p
		}
	}
	return principal
}

// Ticket gives the ticket by which a principal has a task; false where they are not known to have it.
func (h *Held) Ticket(principal string, t Ticket) (text string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok = h.holders[t][principal]
	return text, ok
}

// Holders gives the principals who have a task by their tickets for it, in a map of the caller's own.
func (h *Held) Holders(t Ticket) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]string, len(h.holders[t]))
	for principal, text := range h.holders[t] {
		out[text] = principal
	}
	return out
}

// Forget drops what is known of a server that is gone.
func (h *Held) Forget(server drawbridge.ServerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for principal, tasks := range h.order {
		left := slices.DeleteFunc(tasks, func(t Ticket) bool { return t.Server == server })
		h.all -= len(tasks) - len(left)
		if h.order[principal] = left; len(left) == 0 {
			delete(h.order, principal)
		}
	}
	for t := range h.holders {
		if t.Server == server {
			delete(h.holders, t)
		}
	}
}
