package drawbridge

import (
	"encoding/json"
	"fmt"
	"time"
)

// A CacheHint is what a server said about caching one of its answers. The zero value is "stale at once, private".
type CacheHint struct {
	TTL    time.Duration `json:"ttl,omitempty"`
	Public bool          `json:"public,omitempty"`
}

// A Listing is all that one server offered when it was last asked. Items are the objects as the server sent them.
// A Listing is not changed after it was made.
type Listing struct {
	Server ServerID `json:"server"`
	// ConfigHash is the hash of the server's unresolved configuration: a listing belongs to a row, not to a name.
	ConfigHash string `json:"row"`
	// Era is what the server speaks.
	Era ProtocolEra `json:"era"`
	// Info is the server's Implementation object, Capabilities what it declared, Instructions its text; each may be
	// empty.
	Info         json.RawMessage `json:"info,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Instructions string          `json:"instructions,omitempty"`

	Tools     []json.RawMessage `json:"tools,omitempty"`
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"templates,omitempty"`

	// CacheHints has the caching hints by list method ("tools/list") and for "server/discover".
	CacheHints map[string]CacheHint `json:"hints,omitempty"`
	// ListedAt is when the listing was complete.
	ListedAt time.Time `json:"at"`
}

// A ServerPhase is where a server stands.
type ServerPhase string

// The phases of an endpoint, then the states of a row that is not mounted.
const (
	Idle       ServerPhase = "idle"
	Connecting ServerPhase = "connecting"
	Ready      ServerPhase = "ready"
	Closing    ServerPhase = "closing"
	Closed     ServerPhase = "closed"
	Faulted    ServerPhase = "faulted"
	// NeedsSignIn is a server that answers nobody before a person has signed in.
	NeedsSignIn ServerPhase = "needs-sign-in"
	// Quarantined is a server that is not trusted enough for its cards to be on the deck.
	Quarantined ServerPhase = "quarantined"

	NeedsApproval ServerPhase = "needs-approval"
	Disabled      ServerPhase = "disabled"
	Refused       ServerPhase = "refused"
)

// A ServerStatus is how one server is, for people: mcp list, mcp test.
type ServerStatus struct {
	Server    ServerID    `json:"server"`
	Phase     ServerPhase `json:"phase"`
	Transport string      `json:"transport"`
	// Era is what the server speaks, as a word.
	Era string `json:"era"`
	// Cards counts the server's live cards; Prompts, Resources and Templates what else it lists.
	Cards     int `json:"cards"`
	Prompts   int `json:"prompts,omitempty"`
	Resources int `json:"resources,omitempty"`
	Templates int `json:"templates,omitempty"`
	// StartMillis is how long the last start took, up to the listing; 0 where it never started.
	StartMillis int64 `json:"start_ms,omitempty"`
	// PIDs are the server's processes in this process's fleet: that of the connection which is kept first, then those
	// of callers with one of their own. It is not remembered.
	PIDs []int `json:"pids,omitempty"`
	// Asks says that the server has asked a client something: callers who can be asked have sessions of their own with
	// it.
	Asks bool `json:"asks,omitempty"`
	// Listed is when the server was last listed.
	Listed time.Time `json:"listed,omitzero"`
	// Fault is the last fault, Reason why a row is not mounted; both for people.
	Fault  string `json:"fault,omitempty"`
	Reason string `json:"reason,omitempty"`
	// PendingSignIn is where a person signs in, for a server that needs it; empty where a sign-in has not been
	// prepared.
	SignIn string `json:"sign_in,omitempty"`
	// Confined says what the server's program was kept from when it was last started, such as "files, sockets,
	// signals", or "nothing" and why; empty for a server that is not to be confined.
	Confined string `json:"confined,omitempty"`
	// Stderr is the end of what the server wrote there; Junk counts what it wrote on stdout that was no message.
	Stderr []string `json:"stderr,omitempty"`
	Junk   int      `json:"junk,omitempty"`
	// Notes say, for people, which of the server's names an earlier one has, and what of it is not on the deck and
	// why: a line each, or one for all of a kind where there are more than five.
	Notes []string `json:"notes,omitempty"`
	// Source is the file and line of the row.
	Source string `json:"source,omitempty"`
	// Trust says how far the server is trusted; nil where nobody keeps an account of it.
	Trust *Trust `json:"trust,omitempty"`
}

// A Trust is how far a server is trusted for how it behaved.
type Trust struct {
	// Score is from 0 to 1.
	Score float64 `json:"score"`
	// Level is what the score comes to, as a word: trusted, untrusted or sandboxed; never above what the row says.
	Level string `json:"level"`
	// Quarantined says that the server's cards are not on the deck, Until when they come back if nothing more happens.
	Quarantined bool      `json:"quarantined,omitempty"`
	Until       time.Time `json:"until,omitzero"`
}

// WithTrust is the status of a server that is trusted so far: a quarantined one is in that phase, whatever else it is.
func (s ServerStatus) WithTrust(t *Trust) ServerStatus {
	s.Trust = t
	if t != nil && t.Quarantined {
		s.Phase, s.Reason = Quarantined, t.String()
	}
	return s
}

// String says it for people: "trust 0.35: quarantined until 2026-11-22 14:05:09 UTC".
func (t Trust) String() string {
	text := fmt.Sprintf("trust %.2f", t.Score)
	if t.Quarantined {
		text += ": quarantined until " + t.Until.UTC().Format("2006-01-02 15:04:05 MST")
	}
	return text
}

// A ServerNotification is what a server said outside any call: a log line, an updated resource. Principal is whose
// connection it came on, empty for one that principals share; Session is set where it is one caller's own.
type ServerNotification struct {
	Server    ServerID
	Principal string
	Session   string
	Method    string
	Params    json.RawMessage
}

// WatchSet says what of a server is watched: URIs of resources, and ids of tasks, both as the server knows them.
type WatchSet struct{ URIs, Tasks []string }

// IsEmpty says whether nothing is watched.
func (w WatchSet) IsEmpty() bool { return len(w.URIs) == 0 && len(w.Tasks) == 0 }

// Without gives what of w is not in other, in the order of w.
func (w WatchSet) Without(other WatchSet) WatchSet {
	return WatchSet{URIs: withoutElements(w.URIs, other.URIs), Tasks: withoutElements(w.Tasks, other.Tasks)}
}

// Intersect gives what of w is in other too, in the order of w.
func (w WatchSet) Intersect(other WatchSet) WatchSet { return w.Without(w.Without(other)) }

// withoutElements gives a list without what is in another.
func withoutElements(all, other []string) (left []string) {
	gone := make(map[string]bool, len(other))
	for _, text := range other {
		gone[text] = true
	}
	for _, text := range all {
		if !gone[text] {
			left = append(left, text)
		}
	}
	return left
}

// An UnwatchedError says that some of what is to be watched is not. The rest is.
type UnwatchedError struct {
	// Unwatched is not watched, of what is watched newly.
	Unwatched WatchSet
	// Err says why; where there are several reasons, the first.
	Err error
}

// Error is that of the reason.
func (u *UnwatchedError) Error() string { return u.Err.Error() }

// Unwrap gives the reason.
func (u *UnwatchedError) Unwrap() error { return u.Err }
