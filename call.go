package drawbridge

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// A ProtocolEra is a protocol generation, or a set of them: a server may speak both.
type ProtocolEra uint8

// The protocol generations. The zero value means "not known yet".
const (
	// Legacy is the stateful protocol, up to 2025-11-25: initialize, sessions, requests from the server.
	Legacy ProtocolEra = 1 << iota
	// Modern is the stateless protocol, from 2026-07-28: every request carries all that its server needs.
	Modern
)

// Has reports whether e includes want.
func (e ProtocolEra) Has(want ProtocolEra) bool { return e&want == want && want != 0 }

// String returns "legacy", "modern", "both" or "unknown".
func (e ProtocolEra) String() string {
	return [...]string{"unknown", "legacy", "modern", "both"}[e&3]
}

// A CallerKind is the kind of program a call comes from.
type CallerKind uint8

// The kinds of caller. The zero value is an unknown caller, which may do nothing.
const (
	Nobody CallerKind = iota
	Author
	Agent
	External
	Import
	Sandbox
)

// String returns the kind in lower case.
func (k CallerKind) String() string {
	names := [...]string{"nobody", "author", "agent", "external", "import", "sandbox"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[Nobody]
}

// A Transport is the way a call reached Drawbridge.
type Transport string

// The transports. The empty Transport is for calls that a part of the program itself makes.
const (
	StdioTransport Transport = "stdio"
	HTTPTransport  Transport = "http"
)

// A Caller identifies the sender of a call. The server makes it from what was authenticated, never from claims in a
// payload: a payload may reduce the caller's rights, and never adds to them.
type Caller struct {
	Kind CallerKind
	// Transport is the way the call arrived; it confers no rights.
	Transport Transport
	// Principal owns the private data: the operating system's user on stdio and loopback, a token's subject on HTTP.
	Principal string
	// Session is the key of a stateful session; empty without one. Two sessions never share session data.
	Session string
	// Thread and Run locate an agent's call; they are empty for other callers.
	Thread, Run string
	// Dir is the absolute path of the directory that the caller works in; empty if it is unknown. Relative paths in calls
	// of Drawbridge's own tools start there.
	Dir string
	// Scopes are the rights held. An empty list grants nothing.
	Scopes []Scope
	// AccessToken is the access token by which an OAuth issuer vouched for the caller; empty for all other callers. It
	// is sent only to that issuer, to exchange it for another token.
	AccessToken Secret
	// Era is the generation the caller speaks, Legacy or Modern; Protocol is the revision.
	Era      ProtocolEra
	Protocol string
	// Client is the client's name and version as an MCP Implementation object; Capabilities is the object the client
	// declared. Both are claims, and either may be nil.
	Client, Capabilities json.RawMessage
}

// HasScopes reports whether the caller is known and holds every scope of want.
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

// A Peer reaches the client of a call. Messages that a server sends during the call go through it, so they stay tied to
// the call that caused them.
type Peer interface {
	// Notify sends a notification, such as progress or a log line. An error means that the client is gone.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Request sends a request (sampling, elicitation, roots) and waits for its result object. The error is a *Fault;
	// with Raw set it is the client's own error. If the client does not accept requests, the code is NotFound.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// A Call is one request: for a card, or for a resource, a prompt or a completion.
type Call struct {
	Caller Caller
	// Method is the MCP method: "tools/call", "resources/read", "prompts/get", "completion/complete".
	Method string
	// Params is the params object as the caller sent it. Each later edit changes single members by name. Nil means
	// absent.
	Params json.RawMessage
	// Peer is nil if the client receives no messages during the call.
	Peer Peer
}

// A ReconnectRequester is a Peer that may be able to ask its client to disconnect and to fetch the rest of the call
// later: "the server MAY close the connection without terminating the stream" (transports of 2025-11-25). The upstream
// passes on such a request from its server. Nothing happens if the client's protocol has no message for it.
type ReconnectRequester interface {
	RequestReconnect(after time.Duration)
}
