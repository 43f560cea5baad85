package drawbridge

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// A ProtocolEra is a set of protocol generations. A caller speaks one generation; a server may speak both.
type ProtocolEra uint8

// The protocol generations. The zero value means "not known yet".
const (
	// Legacy is the stateful protocol, up to 2025-11-25: initialize, sessions, requests from the server.
	Legacy ProtocolEra = 1 << iota
	// Modern is the stateless protocol, from 2026-07-28: every request contains everything that the server needs to
	// answer it.
	Modern
)

// Has reports whether e includes want.
func (e ProtocolEra) Has(want ProtocolEra) bool { return e&want == want && want != 0 }

// String returns "legacy", "modern", "both" or "unknown".
func (e ProtocolEra) String() string {
	return [...]string{"unknown", "legacy", "modern", "both"}[e&3]
}

// A CallerKind is the kind of program that a call comes from.
type CallerKind uint8

// The kinds of caller. The zero value is an unknown caller, which may do nothing. Author is the owner at the command
// line. Agent is one of Drawbridge's own agents. External is a client over stdio or HTTP. Import is an import of data.
// Sandbox is a script.
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

// The transports. The empty Transport is for calls that Drawbridge itself makes.
const (
	StdioTransport Transport = "stdio"
	HTTPTransport  Transport = "http"
)

// A Caller identifies the sender of a call. Drawbridge creates a Caller from authenticated data, never from claims in
// the params of a request. Params may reduce the caller's rights but cannot add any.
type Caller struct {
	Kind CallerKind
	// StartedBy is the kind of the caller that started the script; it is set for the kind Sandbox only.
	StartedBy CallerKind
	// Transport is the way the call arrived; it confers no rights.
	Transport Transport
	// Principal names the owner of the caller's private data. It is the user of the operating system on stdio, and for
	// an HTTP request without a token of its own. It is "client:NAME" for the token of a client, and the subject for an
	// access token.
	Principal string
	// Session is the key of the caller's stateful session; empty without one. Two sessions never share session data.
	Session string
	// Thread and Run are the ids of the thread and of the run that an agent's call belongs to; empty for other callers.
	Thread, Run string
	// Agent is what the session of an agent permits; nil for other callers. A script that the agent started has it too.
	Agent *AgentRights
	// Dir is the absolute path of the directory that the caller works in; empty if it is unknown. Relative paths in
	// calls to Drawbridge's own tools are resolved against Dir.
	Dir string
	// Origin is the origin of the content that an outside client writes to the workspace, as it was declared when the
	// client was registered; empty for the default. A call may name a less trusted one.
	Origin string
	// Proof shows the boundary of the workspace that Drawbridge made the caller, and has the type of that package. A
	// caller without a proof, or with members that differ from those that were proven, counts as an outside client.
	Proof any `json:"-"`
	// Scopes are the rights that the caller holds. An empty list grants nothing.
	Scopes []Scope
	// AccessToken is the OAuth access token with which the caller authenticated; empty if the caller authenticated in
	// another way. After its verification, Drawbridge sends the token only to the authorization server of a called
	// server with per-caller credentials, which exchanges it for another token.
	AccessToken Secret
	// Era is the protocol generation of the caller, Legacy or Modern; Protocol is the protocol version, such as
	// "2025-11-25".
	Era      ProtocolEra
	Protocol string
	// Client is the client's name and version as an MCP Implementation object; Capabilities is the object the client
	// declared. Neither is verified, and either may be nil.
	Client, Capabilities json.RawMessage
}

// OriginKind returns StartedBy for a call by a script, and Kind for any other call. A script has at most the rights of
// the caller that started it.
func (c Caller) OriginKind() CallerKind {
	if c.Kind == Sandbox {
		return c.StartedBy
	}
	return c.Kind
}

// HasScopes reports whether the caller holds every scope of want. It returns false for an unknown caller, and for a
// script that an unknown caller started.
func (c Caller) HasScopes(want []Scope) bool {
	if c.OriginKind() == Nobody {
		return false
	}
	for _, w := range want {
		if !slices.ContainsFunc(c.Scopes, func(s Scope) bool { return s.Covers(w) }) {
			return false
		}
	}
	return true
}

// A Peer sends messages to the client that made a call. A message that a server sends during the call goes through the
// call's Peer, so the client receives the message as part of that call.
type Peer interface {
	// Notify sends a notification, such as progress or a log line. An error means that the client is gone.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Request sends a request (sampling, elicitation, roots) and waits for its result object. The error is a *Fault; if
	// its Raw is set, the client itself returned the error. If the client does not accept requests, the code is
	// NotFound.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// A Call is one request of a caller: to call a tool, to read a resource, to get a prompt, or to complete an argument.
type Call struct {
	Caller Caller
	// Method is the MCP method: "tools/call", "resources/read", "prompts/get", "completion/complete".
	Method string
	// Params is the params object as the caller sent it. Drawbridge edits single members by name and leaves all others
	// as they are. Nil means that params is absent.
	Params json.RawMessage
	// Peer is nil if the client cannot receive messages during the call.
	Peer Peer
}

// A ReconnectRequester is a Peer that can ask its client to close the connection. After a delay, the client fetches the
// rest of the response on a new connection. Drawbridge calls RequestReconnect when the called server asks Drawbridge
// for the same. See "the server MAY close the connection without terminating the stream" (transports of 2025-11-25).
// The method does nothing if the client's protocol has no such message.
type ReconnectRequester interface {
	RequestReconnect(after time.Duration)
}
