package trust

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Kept is how many events an account has at most, and Marked how many marks a summary has.
const (
	MaxEvents = 256
	MaxMarks  = 1024
)

// An EventHistory is what is known of one server: its name when something was last noted, and what happened, by time.
type EventHistory struct {
	Server string  `json:"server"`
	Events []Event `json:"events"`
}

// ParseHistory reads an account as Text wrote it; nothing is an empty one. The error is for anything else.
func ParseHistory(text []byte) (a EventHistory, err error) {
	if len(text) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return EventHistory{}, fmt.Errorf("read what is known of a server: %w", err)
	}
	return a, nil
}

// Encode writes the account for ParseHistory.
func (a EventHistory) Encode() ([]byte, error) { return json.Marshal(a) }

// WithEvents is the account with more events. What has only marks that the account knows is left out, and of the rest
// the marks that it knows, each of which counts for one.
func (a EventHistory) WithEvents(events ...Event) EventHistory {
	known := map[string]bool{}
	for _, e := range a.Events {
		for _, mark := range e.Marks {
			known[mark] = true
		}
	}
	a.Events = slices.Clone(a.Events)
	for _, e := range events {
		e.At = e.At.UTC().Truncate(time.Millisecond)
		if len(e.Marks) > 0 {
			fresh := slices.DeleteFunc(slices.Clone(e.Marks), func(mark string) bool {
				seen := known[mark]
				known[mark] = true
				return seen
			})
			if len(fresh) == 0 {
				continue
			}
			e.Count, e.Marks = max(1, e.Count)-(len(e.Marks)-len(fresh)), fresh
		}
		a.Events = append(a.Events, e)
	}
	slices.SortStableFunc(a.Events, compareEvents)
	return a
}

// AsOf returns the history as of now. Events with a later date come from a clock that was put back since: they count as
// the last events before now, in their order. So they delay nothing until that date, a reset at now clears them, and
// they clear nothing that is recorded from now on.
func (a EventHistory) AsOf(now time.Time) EventHistory {
	now = now.UTC().Truncate(time.Millisecond)
	if !slices.ContainsFunc(a.Events, func(e Event) bool { return e.At.After(now) }) {
		return a
	}
	a.Events = slices.Clone(a.Events)
	slices.SortStableFunc(a.Events, compareEvents)
	from := slices.IndexFunc(a.Events, func(e Event) bool { return e.At.After(now) })
	var least time.Time
	if from > 0 {
		least = a.Events[from-1].At
	}
	at, dated := now.Add(-time.Millisecond), a.Events[len(a.Events)-1].At
	for i := len(a.Events) - 1; i >= from; i-- { // each moment is a millisecond before the next
		if e := &a.Events[i]; !e.At.Equal(dated) {
			at, dated = at.Add(-time.Millisecond), e.At
		}
		if at.Before(least) {
			at = least
		}
		a.Events[i].At = at
	}
	return a
}

// Compacted is the account with no more than Kept events: the earliest are summed up in one, with their marks. The
// state that it folds to is the same.
func (a EventHistory) Compacted(r ScoreRules) EventHistory {
	if len(a.Events) <= MaxEvents {
		return a
	}
	from := len(a.Events) - MaxEvents/2
	for from < len(a.Events) && a.Events[from].At.Equal(a.Events[from-1].At) {
		from++ // a moment is summed up whole
	}
	early := a.Events[:from]
	s := r.Fold(early)
	f := r.fallsAfter(s)
	sum := Event{At: s.at, Kind: EventSummary, MissingScore: s.missingScore(), Quarantined: r.IsQuarantined(s, s.at),
		Falls: f.count, LastFall: f.last, QuarantinedUntil: f.quarantinedUntil}
	for _, e := range early {
		sum.Marks = append(sum.Marks, e.Marks...)
	}
	sum.Marks = sum.Marks[max(0, len(sum.Marks)-MaxMarks):]
	a.Events = append([]Event{sum}, a.Events[from:]...)
	return a
}

// RecentReasons returns the last events that explain a score, the newest first: not the calls that succeeded.
func (a EventHistory) RecentReasons(most int) (out []Event) {
	for _, e := range slices.Backward(a.Events) {
		if e.Kind != CallSucceeded && len(out) < most {
			out = append(out, e)
		}
	}
	return out
}
