package upstream

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A serverHealth is the record of how a server is: its state, its last fault and its diagnostics. Its methods may be
// called from several goroutines. They call nothing that takes another lock.
type serverHealth struct {
	// attempted is closed when the first attempt to mount has ended.
	attempted     chan struct{}
	attemptedOnce sync.Once

	mu            sync.Mutex
	phase         drawbridge.ServerPhase
	connecting    time.Time // since when the phase is Connecting; zero in every other phase
	lastFault     string
	slow          bool     // the last fault is that of a start that takes long
	loggedFault   string   // the fault that was logged, until the server is well: each attempt again brings the same
	signInURL     string   // where a person signs in, while that is the fault
	declineReason string   // why the server was declined to ask people; empty where it was not
	missingValues []string // values that could not be resolved
	confinement   string   // what its program is confined from, in words
	startMillis   int64
	junkLines     int
	stderr        []string
}

// newServerHealth returns the health of a server that was never tried. last is its stored status, or the zero value.
func newServerHealth(last drawbridge.ServerStatus) serverHealth {
	return serverHealth{attempted: make(chan struct{}), phase: drawbridge.Idle, lastFault: last.Fault,
		stderr: last.Stderr, startMillis: last.StartMillis, confinement: last.Confined}
}

// markAttempted records that the first attempt to mount has ended.
func (h *serverHealth) markAttempted() { h.attemptedOnce.Do(func() { close(h.attempted) }) }

// enter changes the state, and returns it: a fault that needs a sign-in has a state of its own. The last fault stays.
// news reports whether the fault is to be logged.
func (h *serverHealth) enter(phase drawbridge.ServerPhase, fault error) (now drawbridge.ServerPhase, news bool) {
	needed := oauth.SignInRequired(fault)
	if phase == drawbridge.Faulted && needed.CanSignIn() {
		phase = drawbridge.NeedsSignIn
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case phase != drawbridge.Connecting:
		h.connecting = time.Time{}
	case h.phase != phase:
		h.connecting = time.Now()
	}
	h.phase = phase
	switch {
	case needed.HasURL():
		h.signInURL = needed.URL
	case fault != nil, phase == drawbridge.Ready:
		h.signInURL = ""
	}
	switch {
	case fault != nil:
		h.lastFault, h.slow = transport.TruncatedError(fault), phase == drawbridge.Connecting
		news = h.loggedFault != h.lastFault
		h.loggedFault = h.lastFault
	case phase == drawbridge.Ready:
		h.loggedFault = ""
		if h.slow {
			h.lastFault, h.slow = "", false // it did answer
		}
	}
	return phase, news
}

// isFaulted reports whether the state is a fault that another attempt may end.
func (h *serverHealth) isFaulted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.phase == drawbridge.Faulted
}

// connectingFor returns how long the server has been connecting; 0 in every other state.
func (h *serverHealth) connectingFor() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connecting.IsZero() {
		return 0
	}
	return time.Since(h.connecting)
}

// noteDecline stores, for people, why the server's elicitation was declined and what would allow it.
func (h *serverHealth) noteDecline(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.declineReason = cmp.Or(why, h.declineReason)
}

// noteMissing stores which values of the row could not be resolved at the last attempt.
func (h *serverHealth) noteMissing(values []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missingValues = values
}

// noteStart stores how long the last start took.
func (h *serverHealth) noteStart(millis int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.startMillis = millis
}

// noteConfinement stores what the server's program is confined from.
func (h *serverHealth) noteConfinement(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.confinement = text
}

// noteEnded keeps the diagnostics of a session that ended. Without lines the last ones stay, unless replace is set.
func (h *serverHealth) noteEnded(junk int, lines []string, replace bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.junkLines += junk
	if len(lines) > 0 || replace {
		h.stderr = lines
	}
}

// lastStderr returns the lines that an ended process wrote to standard error.
func (h *serverHealth) lastStderr() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr
}

// report fills in the members of a status that are known here.
func (h *serverHealth) report(s *drawbridge.ServerStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Phase, s.Fault, s.SignIn, s.Confined = h.phase, h.lastFault, h.signInURL, h.confinement
	s.StartMillis, s.Junk, s.Stderr = h.startMillis, h.junkLines, h.stderr
	s.Notes = slices.Clone(h.missingValues)
	if h.declineReason != "" {
		s.Notes = append(s.Notes, "asked for elicitation, which "+h.declineReason)
	}
}
