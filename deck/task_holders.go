package deck

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// taskHolders remembers which tasks were given to whom. Nothing is found by it: a ticket proves itself. But where
// several principals meet at one server, what the server says of its tasks outside an answer to one caller (a list, a
// notification) is shown to those only who are known to have the task: because they got it here, or came with its
// ticket. What is not remembered is not shown. The zero value remembers nothing. Its methods may be called from
// several goroutines.
type taskHolders struct {
	mu sync.Mutex
	// holders has the tickets of each task, by principal.
	holders map[sealedID]map[string]string
	// oldestFirst has each principal's tasks, the oldest first; all counts them.
	oldestFirst map[string][]sealedID
	total       int
}

const (
	// maxHeldTasks is how many tasks are remembered for one principal, maxHeldTasksTotal for all.
	maxHeldTasks      = 4096
	maxHeldTasksTotal = 65536
)

// Add remembers that a principal has a task under this ticket. The oldest task of the principal makes room for it, or
// of the principal who has most.
func (h *taskHolders) Add(principal string, t sealedID, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holders == nil {
		h.holders, h.oldestFirst = map[sealedID]map[string]string{}, map[string][]sealedID{}
	}
	if _, known := h.holders[t][principal]; known {
		h.holders[t][principal] = text
		return
	}
	switch {
	case len(h.oldestFirst[principal]) >= maxHeldTasks:
		h.evictOldest(principal)
	case h.total >= maxHeldTasksTotal:
		h.evictOldest(h.largestHolder())
	}
	if h.holders[t] == nil {
		h.holders[t] = map[string]string{}
	}
	h.holders[t][principal] = text
	h.oldestFirst[principal] = append(h.oldestFirst[principal], t)
	h.total++
}

// evictOldest forgets a principal's oldest task. The lock is held.
func (h *taskHolders) evictOldest(principal string) {
	t := h.oldestFirst[principal][0]
	if h.oldestFirst[principal] = h.oldestFirst[principal][1:]; len(h.oldestFirst[principal]) == 0 {
		delete(h.oldestFirst, principal)
	}
	if delete(h.holders[t], principal); len(h.holders[t]) == 0 {
		delete(h.holders, t)
	}
	h.total--
}

func (h *taskHolders) largestHolder() (principal string) {
	for p, tasks := range h.oldestFirst {
		if len(tasks) > len(h.oldestFirst[principal]) {
			principal = p
		}
	}
	return principal
}

// sealedIDOf gives the ticket by which a principal has a task; false where they are not known to have it.
func (h *taskHolders) sealedIDOf(principal string, t sealedID) (text string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok = h.holders[t][principal]
	return text, ok
}

// principalsByID gives the principals who have a task by their tickets for it, in a map of the caller's own.
func (h *taskHolders) principalsByID(t sealedID) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]string, len(h.holders[t]))
	for principal, text := range h.holders[t] {
		out[text] = principal
	}
	return out
}

// ForgetServer drops what is known of a server that is gone.
func (h *taskHolders) ForgetServer(server drawbridge.ServerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for principal, tasks := range h.oldestFirst {
		left := slices.DeleteFunc(tasks, func(t sealedID) bool { return t.Server == server })
		h.total -= len(tasks) - len(left)
		if h.oldestFirst[principal] = left; len(left) == 0 {
			delete(h.oldestFirst, principal)
		}
	}
	for t := range h.holders {
		if t.Server == server {
			delete(h.holders, t)
		}
	}
}
