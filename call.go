package drawbridge

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// An ProtocolEra is a protocol generation, or a set of them: a server may speak both.
type ProtocolEra uint8

// The protocol generations. The zero value is "not known yet".
const (
	// Legacy is the stateful protocol, up to 2025-11-25: initialize, sessions, requests from the server.
	Legacy ProtocolEra = 1 << iota
	// Modern is the stateless protocol, from 2026-07-28: every request carries what it needs.
	Modern
)

// Has says whether e includes want.
func (e ProtocolEra) Has(want ProtocolEra) bool { return e&want == want && want != 0 }

// String gives "legacy", "modern", "both" or "unknown".
func (e ProtocolEra) String() string {
	return [...]string{"unknown", "legacy", "modern", "both"}[e&3]
}

// A CallerKind says through which door a caller came.
type CallerKind uint8

// The kinds of caller. The zero value is nobody, who may do nothing.
const (
	Nobody CallerKind = iota
	Author
	Agent
	External
	Import
	Sandbox
)

// String gives the kind in lower case.
func (k CallerKind) String() string {
	names := [...]string{"nobody", "author", "agent", "external", "import", "sandbox"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[Nobody]
}

// A Transport is where a caller came in.
type Transport string

// The doors. The empty Door is for a part of the program itself.
const (
	StdioTransport Transport = "stdio"
	HTTPTransport  Transport = "http"
)

// A Caller is who calls. It is made by the surface from what was proved, never from what a payload claims: that may
// take rights away, and gives none.
type Caller struct {
	Kind CallerKind
	// Transport is where the caller came in; it gives no right.
	Transport Transport
	// Principal owns what is private: the operating system's user on stdio and loopback, a token's subject on HTTP.
	Principal string
	// Session is the key of a stateful session; empty where there is none. Sessions never share what is theirs.
	Session string
	// Thread and Run place an agent's call; empty for others.
	Thread, Run string
	// Scopes are the rights held. None grants nothing.
	Scopes []Scope
	// AccessToken is the access token by which an OAuth issuer vouched for the caller; empty for all others. It is for
	// asking that issuer for another one, and is itself sent nowhere else.
	AccessToken Secret
	// Era is the generation the caller speaks, Legacy or Modern; Protocol is the revision.
	Era      ProtocolEra
	Protocol string
	// Client is the client's own name and version as an MCP Implementation object; Capabilities is what it declared.
	// Both are claims. Either may be nil.
	Client, Capabilities json.RawMessage
}

// HasScopes says whether the caller is somebody and has every scope of want.
func (c Caller) HasScopes(want []Scope) bool {
	if c.Kind == Nobody {
		return false
	}
	for _, w := range want {
		if !slices.ContainsFunc(c.Scopes, func(s Scope) bool { return s.Covers(w) }) {
			return false
		}
	}
	return true
}

// A Peer is the caller's half of a conversation: what a server says back in the course of a call goes through it, so
// that it is tied to the call that caused it.
type Peer interface {
	// Notify sends a notification: progress, a log line. An error means the caller is gone.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Request sends a request (sampling, elicitation, roots) and waits for its result object. An error is a *Fault; one
	// with Raw set is the caller's own refusal. A caller that cannot be asked answers NotFound.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// A Call is one request on its way: to a card, or to one of its siblings (a resource, a prompt, a completion).
type Call struct {
	Caller Caller
	// Method is the MCP method: "tools/call", "resources/read", "prompts/get", "completion/complete".
	Method string
	// Params is the request's params object as the caller sent it, but for the edits that the way to the card makes
	// by name. Nil means absent.
	Params json.RawMessage
	// Peer is nil where nobody listens.
	Peer Peer
}

// A Result is a result object as bytes.
type Result struct {
	Raw json.RawMessage
}

// A ReconnectRequester is a Peer whose caller can perhaps be told to hang up, and to come back after that time for
// what is still to come of the call: "the server MAY close the connection without terminating the stream" (transports
// of 2025-11-25). A bridge passes on what its server does; where the caller has no words for it nothing happens.
type ReconnectRequester interface {
	RequestReconnect(after time.Duration)
}
