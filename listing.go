package drawbridge

import (
	"encoding/json"
	"fmt"
	"time"
)

// A CacheHint is a server's hint how long, and for whom, one of its results may be cached. The zero value means that
// the result is for its caller only and is stale immediately.
type CacheHint struct {
	TTL    time.Duration `json:"ttl,omitempty"`
	Public bool          `json:"public,omitempty"`
}

// A Listing is everything that one server offered when Drawbridge last listed it. Tools, Prompts, Resources and
// Templates are the JSON objects as the server sent them. A Listing is immutable.
type Listing struct {
	Server ServerID `json:"server"`
	// ConfigHash is the hash of the server's configuration before its variables and secrets are filled in. The listing
	// may be used only for a server with this hash, not for a server of the same name with another configuration.
	ConfigHash string `json:"row"`
	// Era is the protocol generation of the server.
	Era ProtocolEra `json:"era"`
	// Info is the server's Implementation object, Capabilities the capabilities object that it declared, and
	// Instructions its instructions for clients. Each may be empty.
	Info         json.RawMessage `json:"info,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Instructions string          `json:"instructions,omitempty"`

	Tools     []json.RawMessage `json:"tools,omitempty"`
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"templates,omitempty"`

	// CacheHints holds the caching hint of each list method, such as "tools/list", and of "server/discover".
	CacheHints map[string]CacheHint `json:"hints,omitempty"`
	// ListedAt is the time when the listing was complete.
	ListedAt time.Time `json:"at"`
}

// A ServerPhase is the state of a server.
type ServerPhase string

// The phases. NeedsApproval, Disabled and Refused are the phases of a configured server that may not be mounted. The
// others are the phases of a server that may be mounted.
const (
	Idle       ServerPhase = "idle"
	Connecting ServerPhase = "connecting"
	Ready      ServerPhase = "ready"
	Closing    ServerPhase = "closing"
	Closed     ServerPhase = "closed"
	Faulted    ServerPhase = "faulted"
	// NeedsSignIn is the phase of a server that accepts requests only after a person has signed in.
	NeedsSignIn ServerPhase = "needs-sign-in"
	// Quarantined is the phase of a server whose trust is too low for its tools to be offered.
	Quarantined ServerPhase = "quarantined"

	NeedsApproval ServerPhase = "needs-approval"
	Disabled      ServerPhase = "disabled"
	Refused       ServerPhase = "refused"
)

// A ServerStatus is the current status of one server, as "drawbridge mcp list" and "drawbridge mcp test" show it.
type ServerStatus struct {
	Server    ServerID    `json:"server"`
	Phase     ServerPhase `json:"phase"`
	Transport string      `json:"transport"`
	// Era is the protocol generation of the server, as [ProtocolEra.String] returns it.
	Era string `json:"era"`
	// Cards is the number of the server's cards that callers can use. Prompts, Resources and Templates are the numbers
	// of its other items.
	Cards     int `json:"cards"`
	Prompts   int `json:"prompts,omitempty"`
	Resources int `json:"resources,omitempty"`
	Templates int `json:"templates,omitempty"`
	// StartMillis is the duration of the last start, up to the listing, in milliseconds; 0 if the server never started.
	StartMillis int64 `json:"start_ms,omitempty"`
	// PIDs are the ids of the server's processes that this process runs. The process of the shared connection comes
	// first, then the processes of callers with their own connection. PIDs are not stored.
	PIDs []int `json:"pids,omitempty"`
	// Asks is set if the server has sent a request to a client. Then each caller that accepts requests from servers
	// gets its own session with the server.
	Asks bool `json:"asks,omitempty"`
	// Listed is the time when the server was last listed.
	Listed time.Time `json:"listed,omitzero"`
	// Fault is the text of the last fault; Reason explains why the server is not mounted. Both are for people.
	Fault  string `json:"fault,omitempty"`
	Reason string `json:"reason,omitempty"`
	// SignIn is the address where a person signs in, for a server that requires it; empty if no sign-in has begun.
	SignIn string `json:"sign_in,omitempty"`
	// Confined lists the resources that were denied to the server's program at its last start, such as "files, sockets,
	// signals". If none could be denied, it is "nothing" and the reason. It is empty if the configuration does not
	// confine the server.
	Confined string `json:"confined,omitempty"`
	// Stderr is the end of the server's standard error output; Junk counts the lines on stdout that were not messages.
	Stderr []string `json:"stderr,omitempty"`
	Junk   int      `json:"junk,omitempty"`
	// Notes are lines for people. A note reports an item whose name an earlier server in the configuration already
	// uses, an item that is not offered, or a changed text. More than five notes of one kind are combined into one.
	Notes []string `json:"notes,omitempty"`
	// Source is the file and the line of the server's configuration.
	Source string `json:"source,omitempty"`
	// Trust is the degree of trust in the server; nil if Drawbridge does not compute it.
	Trust *Trust `json:"trust,omitempty"`
	// Flagged is the number of the server's results that matched a rule of the shield, among the results that are still
	// in the store. Unscanned is the number of results that the shield did not examine.
	Flagged   int `json:"flagged,omitempty"`
	Unscanned int `json:"unscanned,omitempty"`
}

// A NotificationReport lists the notifications that a server declares, and the notifications that this process has
// received from it.
type NotificationReport struct {
	Server ServerID `json:"server"`
	// Declared are the server's capabilities that announce notifications, such as "tools.listChanged".
	Declared []string `json:"declared,omitempty"`
	// Watched are the URIs of the server's resources to which clients have subscribed.
	Watched []string `json:"watched,omitempty"`
	// Counts are the numbers of received notifications by method. Recent are the last received notifications except
	// progress, oldest first.
	Counts map[string]int         `json:"counts,omitempty"`
	Recent []ReceivedNotification `json:"recent,omitempty"`
}

// A ReceivedNotification is a notification that a server sent.
type ReceivedNotification struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	// Params is the beginning of the notification's params as text, with secrets redacted.
	Params string `json:"params,omitempty"`
}

// A Trust is the degree of trust in a server, computed from the server's behaviour.
type Trust struct {
	// Score is from 0 to 1.
	Score float64 `json:"score"`
	// Level is the level that the score corresponds to: trusted, untrusted or sandboxed. It never exceeds the level in
	// the server's configuration.
	Level string `json:"level"`
	// Quarantined is set while the server's tools are not offered because its trust is too low. Until is the time when
	// they are offered again, unless the trust decreases before.
	Quarantined bool      `json:"quarantined,omitempty"`
	Until       time.Time `json:"until,omitzero"`
}

// WithTrust returns a copy of the status with Trust set to t. If t quarantines the server, WithTrust also sets Phase to
// Quarantined and Reason to the text of t.
func (s ServerStatus) WithTrust(t *Trust) ServerStatus {
	s.Trust = t
	if t != nil && t.Quarantined {
		s.Phase, s.Reason = Quarantined, t.String()
	}
	return s
}

// Percent returns the score in per cent, rounded down: "35%".
func (t Trust) Percent() string {
	const roundingError = 1e-9
	return fmt.Sprintf("%d%%", int(100*(t.Score+roundingError)))
}

// String returns a text for people: "trust 35%: quarantined until 2026-11-22 14:05:09 UTC".
func (t Trust) String() string {
	text := "trust " + t.Percent()
	if t.Quarantined {
		text += ": quarantined until " + t.Until.UTC().Format("2006-01-02 15:04:05 MST")
	}
	return text
}

// A ServerNotification is a message that a server sent outside any call, such as a log message or a changed resource.
// Principal is the owner of the connection to the server on which the message arrived; empty for a connection that
// several principals share. Session is set if the connection belongs to one session.
type ServerNotification struct {
	Server    ServerID
	Principal string
	Session   string
	Method    string
	Params    json.RawMessage
}

// A WatchSet holds the items of one server whose changes Drawbridge watches: URIs of resources and ids of tasks, as the
// server knows them.
type WatchSet struct{ URIs, Tasks []string }

// IsEmpty reports whether the set has no items.
func (w WatchSet) IsEmpty() bool { return len(w.URIs) == 0 && len(w.Tasks) == 0 }

// Without returns the elements of w that are not in other, in the order of w.
func (w WatchSet) Without(other WatchSet) WatchSet {
	return WatchSet{URIs: withoutElements(w.URIs, other.URIs), Tasks: withoutElements(w.Tasks, other.Tasks)}
}

// Intersect returns the elements of w that are also in other, in the order of w.
func (w WatchSet) Intersect(other WatchSet) WatchSet { return w.Without(w.Without(other)) }

// withoutElements returns the elements of all that are not in other.
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

// An UnwatchedError reports that a server accepted only some items of a watch set. Changes of the items in Unwatched
// are not reported; all other items are watched.
type UnwatchedError struct {
	// Unwatched holds the items that could not be watched.
	Unwatched WatchSet
	// Err is the reason why they could not be watched; the first reason if there are several.
	Err error
}

// Error returns the reason's text.
func (u *UnwatchedError) Error() string { return u.Err.Error() }

// Unwrap returns the reason.
func (u *UnwatchedError) Unwrap() error { return u.Err }
