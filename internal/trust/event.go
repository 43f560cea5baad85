package trust

import (
	"fmt"
	"time"
)

// An EventKind is the kind of an event.
type EventKind string

// The kinds of events. The first four lower the score, and CallSucceeded raises it. TrustReset and EventSummary set it
// to a new value.
const (
	// DefinitionChanged means that the meaning of a definition changed. A change of the wording alone is not an event.
	DefinitionChanged EventKind = "definition_changed"
	// TextSanitised means that text from the server was removed, renamed or flagged.
	TextSanitised EventKind = "sanitised"
	// UnexpectedTool means that the server offered a tool that it must not offer.
	UnexpectedTool EventKind = "unexpected_tool"
	// CallFailed means that a call failed with the fault code Transient or ServerError.
	CallFailed EventKind = "call_failed"
	// CallSucceeded means that a call returned a result.
	CallSucceeded EventKind = "call_succeeded"
	// TrustReset means that a person reset the score to 1.
	TrustReset EventKind = "reset"
	// EventSummary replaces earlier events that are no longer stored: it contains the state after these events.
	EventSummary EventKind = "summary"
)

// An Event is one observation about a server, or several observations of one kind at the same time.
type Event struct {
	// At is the time of the event, with a precision of milliseconds.
	At   time.Time `json:"at"`
	Kind EventKind `json:"kind"`
	// Count is the number of observations; a value below 1 means 1.
	Count int `json:"count,omitempty"`
	// Why describes the event for people.
	Why string `json:"why,omitempty"`
	// Marks identify the observations. An observation whose mark is already in the history is not counted again. An
	// event without marks is always counted.
	Marks []string `json:"marks,omitempty"`
	// The following fields are the state of an EventSummary, after the events that it replaces. MissingScore is 1 minus
	// the score, and Quarantined reports whether the server was quarantined. Falls is the number of falls below the
	// threshold (see fallHistory), and LastFall is the time of the last fall. QuarantinedUntil is the earliest end of
	// the quarantine.
	MissingScore     float64   `json:"lost,omitempty"`
	Quarantined      bool      `json:"held,omitempty"`
	Falls            int       `json:"falls,omitempty"`
	LastFall         time.Time `json:"fell,omitzero"`
	QuarantinedUntil time.Time `json:"least,omitzero"`
}

// scoreChangeMilli returns the change of the score in thousandths. Each observation changes the score by a fixed
// amount, up to a maximum for the event.
func (e Event) scoreChangeMilli() int {
	each, most := 0, 0
	switch e.Kind {
	case DefinitionChanged:
		each, most = -200, -400
	case TextSanitised:
		each, most = -250, -750
	case UnexpectedTool:
		each, most = -150, -300
	case CallFailed:
		each, most = -20, -1000
	case CallSucceeded:
		each, most = 5, 1000
	default:
		return 0
	}
	if count := max(1, e.Count); count < most/each {
		return each * count
	}
	return most
}

// ScoreChange returns the change of the score by the event; it is negative for an event against the server.
func (e Event) ScoreChange() float64 { return float64(e.scoreChangeMilli()) / 1000 }

// String returns a description of the event and of its effect on the score, for people.
func (e Event) String() string {
	text := e.Kind.description()
	if e.Why != "" {
		text += ": " + e.Why
	}
	switch e.Kind {
	case TrustReset:
		return text
	case EventSummary:
		return fmt.Sprintf("%s: %.2f was left", text, 1-e.MissingScore)
	}
	return fmt.Sprintf("%+.3f  %s", e.ScoreChange(), text)
}

// description returns a description of the kind for people.
func (k EventKind) description() string {
	switch k {
	case DefinitionChanged:
		return "a definition changed"
	case TextSanitised:
		return "something in what it says was blanked or flagged"
	case UnexpectedTool:
		return "a tool that was not expected"
	case CallFailed:
		return "a call failed"
	case CallSucceeded:
		return "a call succeeded"
	case TrustReset:
		return "reset by a person"
	case EventSummary:
		return "what was before"
	}
	return string(k)
}
