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

// A serverHealth stores the state of a server, its last fault and its diagnostics. Its methods may be called from
// several goroutines. They do not acquire any other lock.
type serverHealth struct {
	// attempted is closed when the first attempt to mount has ended.
	attempted     chan struct{}
	attemptedOnce sync.Once

	mu            sync.Mutex
	phase         drawbridge.ServerPhase
	connecting    time.Time // when the phase Connecting began; zero in every other phase
	lastFault     string
	slow          bool     // the last fault reports a slow start
	loggedFault   string   // the last logged fault, cleared in Ready: an equal fault is not logged again
	signInURL     string   // the sign-in URL while a sign-in is required
	declineReason string   // why an elicitation of the server was declined; empty if none was
	missingValues []string // values that could not be resolved
	confinement   string   // the restrictions of its program, as text
	startMillis   int64
	junkLines     int
	stderr        []string
}

// newServerHealth returns the health of a server that was not yet mounted. last is the status that an earlier process
// stored, or the zero value.
func newServerHealth(last drawbridge.ServerStatus) serverHealth {
	return serverHealth{attempted: make(chan struct{}), phase: drawbridge.Idle, lastFault: last.Fault,
		stderr: last.Stderr, startMillis: last.StartMillis, confinement: last.Confined}
}

// markAttempted closes attempted, when the first attempt to mount has ended.
func (h *serverHealth) markAttempted() { h.attemptedOnce.Do(func() { close(h.attempted) }) }

// enter changes the state to phase and returns the new state. The new state is NeedsSignIn instead of Faulted if the
// fault requires a sign-in. If fault is nil, the last fault is kept. news is true if fault differs from the last logged
// fault; the caller must then log it.
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
			h.lastFault, h.slow = "", false // the slow server has answered
		}
	}
	return phase, news
}

// isFaulted reports whether the state is Faulted.
func (h *serverHealth) isFaulted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.phase == drawbridge.Faulted
}

// connectingFor returns how long the server has been in the state Connecting; 0 in every other state.
func (h *serverHealth) connectingFor() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connecting.IsZero() {
		return 0
	}
	return time.Since(h.connecting)
}

// noteDecline stores why an elicitation of the server was declined and which setting would permit it. An empty reason
// is ignored.
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

// noteStart stores the duration of the last start.
func (h *serverHealth) noteStart(millis int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.startMillis = millis
}

// noteConfinement stores a description of the restrictions of the server's program.
func (h *serverHealth) noteConfinement(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.confinement = text
}

// noteEnded stores the diagnostics of a session that ended: the count of junk lines and the lines of standard error. If
// lines is empty, the earlier lines are kept unless replace is set.
func (h *serverHealth) noteEnded(junk int, lines []string, replace bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.junkLines += junk
	if len(lines) > 0 || replace {
		h.stderr = lines
	}
}

// lastStderr returns the lines that the last ended process wrote to standard error.
func (h *serverHealth) lastStderr() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr
}

// report sets the members of a status that the serverHealth stores.
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
