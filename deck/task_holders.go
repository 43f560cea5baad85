package deck

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// taskHolders remembers which principal holds which tasks. It is safe for concurrent use, and the zero value is empty.
//
// Sealed ids prove themselves and need no table. But if several principals share a server, its lists of tasks and its
// notifications do not tell whose a task is. They are shown only to a principal who is known to hold the task: it was
// issued here, or the principal sent its id. A task that is not remembered is not shown.
type taskHolders struct {
	mu sync.Mutex
	// holders has the sealed ids of each task by principal.
	holders map[sealedID]map[string]string
	// oldestFirst has each principal's tasks, oldest first; total counts them.
	oldestFirst map[string][]sealedID
	total       int
}

const (
	// maxHeldTasks bounds the tasks of one principal, and maxHeldTasksTotal the tasks of all.
	maxHeldTasks      = 4096
	maxHeldTasksTotal = 65536
)

// Add remembers that a principal holds a task under this sealed id. When full, it evicts the principal's oldest task,
// or that of the principal with the most tasks.
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

// sealedIDOf returns the sealed id under which a principal holds a task.
func (h *taskHolders) sealedIDOf(principal string, t sealedID) (text string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok = h.holders[t][principal]
	return text, ok
}

// principalsByID returns the principals who hold a task by their sealed ids, in a new map.
func (h *taskHolders) principalsByID(t sealedID) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]string, len(h.holders[t]))
	for principal, text := range h.holders[t] {
		out[text] = principal
	}
	return out
}

// ForgetServer drops the tasks of a removed server.
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
