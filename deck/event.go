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
	// ResourceUpdated reports that the content of the resource [Event].URI has changed.
	ResourceUpdated
	// ServerNotified forwards any other notification that a server sent outside a call.
	ServerNotified
	// TaskChanged forwards a server's notification about a task.
	TaskChanged
)

// An Event reports a change that did not occur during a call, such as a changed list. The parts of Drawbridge that
// serve clients receive events, and forward them to the clients.
type Event struct {
	Kind EventKind
	// URI is the public URI of the resource, for ResourceUpdated.
	URI string
	// Task is the public ID of the task, for TaskChanged.
	Task string
	// Principal is the only principal whose callers may receive the event; empty means all principals.
	Principal string
	// Notification is the server's notification, for ResourceUpdated, ServerNotified and TaskChanged. For
	// ResourceUpdated and TaskChanged, its params contain the public URI or task ID instead of the server's own.
	Notification drawbridge.ServerNotification
	// HiddenFrom reports whether a guard hides the server, resource or task of the event from a caller. If it is nil,
	// nothing is hidden.
	HiddenFrom func(drawbridge.Caller) bool
}

// VisibleTo reports whether the caller may receive the event. A server's notification is only for callers that have the
// server's scope. A notification from a connection that was opened for one session or one principal is only for that
// session or principal.
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
