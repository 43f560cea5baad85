package drawbridge

import (
	"encoding/json"
	"errors"
	"strings"
)

// A FaultKind is the part of the system in which a fault occurred, or UnknownCapability.
type FaultKind string

// The four kinds of fault.
const (
	// UnknownCapability: no card, resource or prompt has that name, or it is hidden from the caller.
	UnknownCapability FaultKind = "unknown_capability"
	// BuildFailed: a card could not be built.
	BuildFailed FaultKind = "build_failed"
	// BridgeFault: mounting, listing or calling a server failed.
	BridgeFault FaultKind = "bridge"
	// Backend: the store, a file or another thing that Drawbridge itself needs is missing or broken.
	Backend FaultKind = "backend"
)

// A FaultCode classifies a fault, so that a caller can react to it. Only the code decides whether the same call may
// succeed later; see [FaultCode.Retryable].
type FaultCode string

// The seven fault codes.
const (
	Transient     FaultCode = "transient"
	RateLimited   FaultCode = "rate_limited"
	ServerError   FaultCode = "server_error"
	InvalidInput  FaultCode = "invalid_input"
	AuthFailure   FaultCode = "auth_failure"
	NotFound      FaultCode = "not_found"
	PolicyBlocked FaultCode = "policy_blocked"
)

// Retryable reports whether the same call may succeed later. Whether repeating the call is safe depends on the card
// too, see [Fault.MayRetry].
func (c FaultCode) Retryable() bool {
	return c == Transient || c == RateLimited || c == ServerError
}

// A Fault is an error whose text clients may see. It consists of a code, the step that failed, the cause and an
// optional hint what to do next. For any other error, clients see only "internal error".
type Fault struct {
	Kind FaultKind
	Code FaultCode
	// Step is the action that failed and its object: "mount github".
	Step string
	// Err is the cause; nil if the step is the whole message.
	Err error
	// Next tells a person what to do next; empty without a hint.
	Next string
	// Ambiguous is set if the request was sent and its outcome is unknown: it may have taken effect.
	Ambiguous bool
	// Raw is the JSON-RPC error object that a server or a client sent; nil if Drawbridge made the error. It is passed
	// on to the caller unchanged.
	Raw json.RawMessage
}

// Error returns Step, Err and Next in one line.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.Step)
	if f.Err != nil {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(f.Err.Error())
	}
	if f.Next != "" {
		b.WriteString(" (")
		b.WriteString(f.Next)
		b.WriteString(")")
	}
	return b.String()
}

// MayRetry reports whether the failed call may be repeated. The code must be retryable. If the outcome of the call is
// unknown, the call must also be harmless: its method only reads, or its tool declares itself read-only or idempotent.
// Drawbridge repeats a sent request only if MayRetry returns true.
func (f *Fault) MayRetry(harmless bool) bool { return f.Code.Retryable() && (harmless || !f.Ambiguous) }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// AsFault returns the Fault that err is or wraps. For any other error it returns a ServerError "internal error": its
// text does not contain the cause, but it wraps err for logs. AsFault returns nil for nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return &Fault{Kind: Backend, Code: ServerError, Step: "internal error", Err: hiddenCause{err}}
}

// hiddenCause wraps an error for errors.Is and for logs. Its own text does not contain the text of the error.
type hiddenCause struct{ error }

func (h hiddenCause) Error() string { return "see the log" }
func (h hiddenCause) Unwrap() error { return h.error }
