package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
)

// An EventKind is the kind of an event.
type EventKind uint8

// The kinds of event.
const (
	ToolsChanged EventKind = iota + 1
	PromptsChanged
	// ResourcesChanged reports changed resources or templates.
	ResourcesChanged
	// ResourceUpdated reports that the resource URI has new content.
	ResourceUpdated
	// ServerNotified forwards a server's notification outside any call.
	ServerNotified
	// TaskChanged forwards a server's notification about a task.
	TaskChanged
)

// An Event tells a surface about a change outside any call.
type Event struct {
	Kind EventKind
	// URI is the public URI of the resource, for ResourceUpdated.
	URI string
	// Task is the task's public id, for TaskChanged.
	Task string
	// Principal is the only principal whose callers may receive the event; empty means all.
	Principal string
	// Notification is the server's notification, for ResourceUpdated, ServerNotified and TaskChanged, with public URI
	// or task id.
	Notification drawbridge.ServerNotification
	// HiddenFrom reports whether a guard hides the subject from a caller; nil hides it from no caller.
	HiddenFrom func(drawbridge.Caller) bool
}

// VisibleTo reports whether the caller may receive the event. A server's notification is for callers with its scope.
// One from a caller's own session is for that session alone, and one from a principal's connection for that principal.
func (e Event) VisibleTo(caller drawbridge.Caller) bool {
	n := e.Notification
	for _, principal := range []string{e.Principal, n.Principal} {
		if principal != "" && principal != caller.Principal {
			return false
		}
	}
	if n.Session != "" && n.Session != caller.Session {
		return false
	}
	return n.Server == "" || caller.HasScopes([]drawbridge.Scope{drawbridge.ServerScope(n.Server)}) &&
		(e.HiddenFrom == nil || !e.HiddenFrom(caller))
}
