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

// An Event reports a change outside any call to the parts of Drawbridge that serve clients.
type Event struct {
	Kind EventKind
	// URI is the public URI of the resource, for ResourceUpdated.
	URI string
	// Task is the public ID of the task, for TaskChanged.
	Task string
	// Principal is the only principal whose callers may receive the event; empty means all principals.
	Principal string
	// Notification is the server's notification, for ResourceUpdated, ServerNotified and TaskChanged. Its URI or task ID
	// is the public one.
	Notification drawbridge.ServerNotification
	// HiddenFrom reports whether a guard hides the subject of the event from a caller; nil means that it is visible to
	// all.
	HiddenFrom func(drawbridge.Caller) bool
}

// VisibleTo reports whether the caller may receive the event. A server's notification is only for callers that have the
// server's scope. A notification from a caller's own session is only for that session. A notification from a
// principal's connection is only for that principal.
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
