package deck

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// taskHolders stores which principal holds which tasks. It is safe for concurrent use. The zero value is empty.
//
// A sealed ID proves its principal without a table. But if several principals share a server, the server's lists of
// tasks and its notifications do not show to which principal a task belongs. A task in them is shown only to a
// principal that holds the task. A principal holds a task if the deck issued its ID to the principal, or if the
// principal sent the ID. A task that is not stored here is not shown.
type taskHolders struct {
	mu sync.Mutex
	// holders has, for each task, the sealed IDs by principal.
	holders map[sealedID]map[string]string
	// oldestFirst has each principal's tasks, oldest first. total is the number of all these tasks.
	oldestFirst map[string][]sealedID
	total       int
}

const (
	// maxHeldTasks is the maximum number of tasks of one principal, and maxHeldTasksTotal of all principals.
	maxHeldTasks      = 4096
	maxHeldTasksTotal = 65536
)

// Add stores that a principal holds a task under the sealed ID text. If the principal has too many tasks, its oldest
// task is removed. If there are too many tasks in total, the oldest task of the principal with the most tasks is
// removed.
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

// evictOldest removes a principal's oldest task. The caller must hold mu.
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

// sealedIDOf returns the sealed ID under which a principal holds a task.
func (h *taskHolders) sealedIDOf(principal string, t sealedID) (text string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok = h.holders[t][principal]
	return text, ok
}

// principalsByID returns the principals that hold a task, by their sealed IDs. The map is new.
func (h *taskHolders) principalsByID(t sealedID) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]string, len(h.holders[t]))
	for principal, text := range h.holders[t] {
		out[text] = principal
	}
	return out
}

// ForgetServer removes the tasks of a removed server.
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
