package trust

import (
	"fmt"
	"time"
)

// A Kind says what an event is about.
type Kind string

// The kinds of event: what speaks against a server, what speaks for it, and what a person or we ourselves set.
const (
	// Changed: a definition says something else than before, and more than another wording of the same.
	Changed Kind = "definition_changed"
	// Sanitised: something had to be taken out of what the server says.
	Sanitised Kind = "sanitised"
	// Unexpected: a tool that the server may not offer.
	Unexpected Kind = "unexpected_tool"
	// Failed: a call ended Transient or ServerError.
	Failed Kind = "call_failed"
	// Succeeded: a call was answered.
	Succeeded Kind = "call_succeeded"
	// Reset: a person decided that all is forgiven.
	Reset Kind = "reset"
	// Summary stands for earlier events that are not kept.
	Summary Kind = "summary"
)

// An Event is one thing that happened, or several of one kind in one look at the server.
type Event struct {
	// At counts to the millisecond.
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Count is how often it happened in this look; below 1 is once.
	Count int `json:"count,omitempty"`
	// Why says for people what happened.
	Why string `json:"why,omitempty"`
	// Marks name what was seen, so that it counts once, however often it is seen. Without any it counts each time.
	Marks []string `json:"marks,omitempty"`
	// Lost, Held and what follows are the state at the end of a Summary: how often the server fell under the threshold, when it did
	// last, and until when it is quarantined at least for that.
	Lost  float64   `json:"lost,omitempty"`
	Held  bool      `json:"held,omitempty"`
	Falls int       `json:"falls,omitempty"`
	Fell  time.Time `json:"fell,omitzero"`
	Least time.Time `json:"least,omitzero"`
}

// thousandths is what an event does to the score: for each time that it happened, and at most, whatever the number.
func (e Event) thousandths() int {
	each, most := 0, 0
	switch e.Kind {
	case Changed:
		each, most = -200, -400
	case Sanitised:
		each, most = -250, -750
	case Unexpected:
		each, most = -150, -300
	case Failed:
		each, most = -20, -1000
	case Succeeded:
		each, most = 5, 1000
	default:
		return 0
	}
	if count := max(1, e.Count); count < most/each {
		return each * count
	}
	return most
}

// Amount is what the event takes from the score, or adds to it.
func (e Event) Amount() float64 { return float64(e.thousandths()) / 1000 }

// String says for people what happened, and what it did to the score.
func (e Event) String() string {
	text := e.Kind.words()
	if e.Why != "" {
		text += ": " + e.Why
	}
	switch e.Kind {
	case Reset:
		return text
	case Summary:
		return fmt.Sprintf("%s: %.2f was left", text, 1-e.Lost)
	}
	return fmt.Sprintf("%+.3f  %s", e.Amount(), text)
}

// words is the kind for people.
func (k Kind) words() string {
	switch k {
	case Changed:
		return "a definition changed"
	case Sanitised:
		return "something in what it says was blanked or flagged"
	case Unexpected:
		return "a tool that was not expected"
	case Failed:
		return "a call failed"
	case Succeeded:
		return "a call succeeded"
	case Reset:
		return "reset by a person"
	case Summary:
		return "what was before"
	}
	return string(k)
}
