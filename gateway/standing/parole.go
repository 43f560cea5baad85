package standing

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/trust"
)

const (
	// firstStay is how long a second quarantine lasts at least; each further one lasts twice as long, up to longestStay.
	firstStay   = 15 * time.Minute
	longestStay = 24 * time.Hour
	// calm is how long a server must have been free for its next quarantine to count as the first.
	calm = 2 * longestStay
)

// A parole is what a process knows of the quarantines of a server. Each time its cards leave the deck and come back, and that is on
// record for ever: one that misbehaves as soon as it is back stays away for longer each time.
type parole struct {
	// begun counts how often it was quarantined, from is when it was last, and least until when it is at least.
	begun       int
	from, least time.Time
}

// judge looks whether a quarantine begins, after something was noted: was says whether there was one before, forgiven that a person has
// just forgiven the server everything.
func (a *account) judge(r trust.Rules, now time.Time, was, forgiven bool) {
	if forgiven {
		a.parole = parole{}
	}
	if was || !r.Quarantined(a.state, now) {
		return
	}
	if now.Sub(a.least) > calm {
		a.begun = 0
	}
	a.from, a.least = now, now
	if a.begun > 0 {
		a.least = now.Add(min(firstStay<<min(a.begun-1, 10), longestStay))
	}
	a.begun++
}

// forgiven says whether a person forgave the server since it was quarantined last, in whichever process.
func (a *account) forgiven() bool {
	return slices.ContainsFunc(a.Events, func(e trust.Event) bool { return e.Kind == trust.Reset && !e.At.Before(a.from) })
}

// quarantined says whether the server is quarantined: by its score, or since it was too often.
func (a *account) quarantined(r trust.Rules, now time.Time) bool {
	return r.Quarantined(a.state, now) || now.Before(a.least)
}

// until is when a quarantine ends if nothing more happens; zero where there is none.
func (a *account) until(r trust.Rules, now time.Time) time.Time {
	at := r.Until(a.state, now)
	if now.Before(a.least) && a.least.After(at) {
		return a.least
	}
	return at
}
