package trust

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// MaxEvents is the maximum number of events in a history. MaxMarks is the maximum number of marks in a summary.
const (
	MaxEvents = 256
	MaxMarks  = 1024
)

// An EventHistory contains the events of one server, ordered by time. Server is the name that the server had at the
// time of the last event.
type EventHistory struct {
	Server string  `json:"server"`
	Events []Event `json:"events"`
}

// ParseHistory parses a history that Encode returned. Empty text is an empty history; other text is an error.
func ParseHistory(text []byte) (a EventHistory, err error) {
	if len(text) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return EventHistory{}, fmt.Errorf("read what is known of a server: %w", err)
	}
	return a, nil
}

// Encode returns the history in the form that ParseHistory reads.
func (a EventHistory) Encode() ([]byte, error) { return json.Marshal(a) }

// WithEvents returns the history with more events. Marks that the history already contains are removed from the new
// events, and each removed mark lowers the event's Count by one. A new event whose marks are all removed is omitted.
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

// AsOf returns the history for the time now. Events after now come from a clock that was fast, and was corrected later.
// AsOf changes the times of these events to shortly before now, and keeps their order. Otherwise the score could not
// recover until the wrong times. A reset at now would not clear these events, and a reset among them would clear later
// events.
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
	for i := len(a.Events) - 1; i >= from; i-- { // events of different times get times one millisecond apart
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

// Compacted returns a history with at most MaxEvents events, and with the same score and quarantine at each time from
// its last event on. If there are more events, the earliest are replaced by one EventSummary, which contains the latest
// MaxMarks of their marks.
func (a EventHistory) Compacted(r ScoreRules) EventHistory {
	if len(a.Events) <= MaxEvents {
		return a
	}
	from := len(a.Events) - MaxEvents/2
	for from < len(a.Events) && a.Events[from].At.Equal(a.Events[from-1].At) {
		from++ // events of the same time are summarized together
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

// RecentReasons returns the latest events that explain the score, the newest first, up to the number most. It omits
// successful calls.
func (a EventHistory) RecentReasons(most int) (out []Event) {
	for _, e := range slices.Backward(a.Events) {
		if e.Kind != CallSucceeded && len(out) < most {
			out = append(out, e)
		}
	}
	return out
}
