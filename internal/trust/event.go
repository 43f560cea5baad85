package trust

import (
	"fmt"
	"time"
)

// An EventKind says what an event is about.
type EventKind string

// The kinds of event: what speaks against a server, what speaks for it, and what a person or we ourselves set.
const (
	// DefinitionChanged: a definition says something else than before, and more than another wording of the same.
	DefinitionChanged EventKind = "definition_changed"
	// TextSanitised: something had to be taken out of what the server says.
	TextSanitised EventKind = "sanitised"
	// UnexpectedTool: a tool that the server may not offer.
	UnexpectedTool EventKind = "unexpected_tool"
	// CallFailed: a call ended Transient or ServerError.
	CallFailed EventKind = "call_failed"
	// CallSucceeded: a call was answered.
	CallSucceeded EventKind = "call_succeeded"
	// TrustReset: a person decided that all is forgiven.
	TrustReset EventKind = "reset"
	// EventSummary stands for earlier events that are not kept.
	EventSummary EventKind = "summary"
)

// An Event is one thing that happened, or several of one kind in one look at the server.
type Event struct {
	// At counts to the millisecond.
	At   time.Time `json:"at"`
	Kind EventKind `json:"kind"`
	// Count is how often it happened in this look; below 1 is once.
	Count int `json:"count,omitempty"`
	// Why says for people what happened.
	Why string `json:"why,omitempty"`
	// Marks name what was seen, so that it counts once, however often it is seen. Without any it counts each time.
	Marks []string `json:"marks,omitempty"`
	// MissingScore, Held and what follows are the state at the end of a Summary: how often the server fell under the
	// threshold, when it did last, and until when it is quarantined at least for that.
	MissingScore     float64   `json:"lost,omitempty"`
	Quarantined      bool      `json:"held,omitempty"`
	Falls            int       `json:"falls,omitempty"`
	LastFall         time.Time `json:"fell,omitzero"`
	QuarantinedUntil time.Time `json:"least,omitzero"`
}

// scoreChangeMilli is what an event does to the score: for each time that it happened, and at most, whatever the
// number.
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

// ScoreChange is what the event takes from the score, or adds to it.
func (e Event) ScoreChange() float64 { return float64(e.scoreChangeMilli()) / 1000 }

// String says for people what happened, and what it did to the score.
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

// description is the kind for people.
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
