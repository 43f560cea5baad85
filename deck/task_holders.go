package deck

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// taskHolders stores which principals may see which tasks. It is safe for concurrent use. The zero value is empty.
//
// A request with a sealed ID proves that the task belongs to the principal, without a table. But if several principals
// share a server, its lists of tasks and its notifications do not tell to which principal a task belongs. So the deck
// shows a task in them only to principals that hold the task. A principal holds a task if the deck issued the task's
// sealed ID to the principal, or if the principal sent the sealed ID. Tasks that were removed from this table, or were
// stored before a restart, are not shown in lists until their ID is used again.
type taskHolders struct {
	mu sync.Mutex
	// holders contains, for each task, the principals that hold it, with their sealed IDs of the task.
	holders map[sealedID]map[string]string
	// oldestFirst contains the tasks that each principal holds, oldest first. total is the number of all its entries.
	oldestFirst map[string][]sealedID
	total       int
}

const (
	// maxHeldTasks is the maximum number of tasks that one principal holds. maxHeldTasksTotal is the maximum for all
	// principals together.
	maxHeldTasks      = 4096
	maxHeldTasksTotal = 65536
)

// Add stores that a principal holds a task. text is the principal's sealed ID of the task. If the principal already
// holds maxHeldTasks tasks, its oldest task is removed. If there are maxHeldTasksTotal tasks, the oldest task of the
// principal with the most tasks is removed.
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

// evictOldest removes the oldest task of a principal. The caller must hold mu.
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

// sealedIDOf returns a principal's sealed ID of a task; ok is false if the principal does not hold the task.
func (h *taskHolders) sealedIDOf(principal string, t sealedID) (text string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok = h.holders[t][principal]
	return text, ok
}

// principalsByID returns the principals that hold a task. The keys are their sealed IDs of the task.
func (h *taskHolders) principalsByID(t sealedID) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]string, len(h.holders[t]))
	for principal, text := range h.holders[t] {
		out[text] = principal
	}
	return out
}

// ForgetServer removes all tasks of a server that is not configured any more.
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
