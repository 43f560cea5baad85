package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
)

// An EventKind says what an Event tells.
type EventKind uint8

// The kinds of event.
const (
	ToolsChanged EventKind = iota + 1
	PromptsChanged
	// ResourcesChanged tells of resources or templates.
	ResourcesChanged
	// ResourceUpdated tells that the resource topicURI has new content.
	ResourceUpdated
	// ServerNotified passes on what a server said outside any call.
	ServerNotified
	// TaskChanged passes on what a server said of a task.
	TaskChanged
)

// An Event tells the surface what happened on the deck outside any call.
type Event struct {
	Kind EventKind
	// topicURI is the resource's topicURI as callers know it, for ResourceUpdated.
	URI string
	// Task is the id of the task as its principal knows it, for TaskChanged.
	Task string
	// Principal is the only one whose callers may hear of it; empty for everybody.
	Principal string
	// Notification is what the server said, for ResourceUpdated, Noticed and TaskChanged; its topicURI or task id is
	// the one that callers know.
	Notification drawbridge.ServerNotification
	// HiddenFrom says from whom a guard hides what it is about; nil is nobody.
	HiddenFrom func(drawbridge.Caller) bool
}

// VisibleTo says whether the caller may hear of the event. What a server says is for those who may call it, and what it
// says in a session of one caller's own for that caller alone, as on one principal's connection for that principal.
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
