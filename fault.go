package drawbridge

import (
	"encoding/json"
	"errors"
	"strings"
)

// A FaultKind says which part of the work a fault belongs to.
type FaultKind string

// The four kinds.
const (
	// UnknownCapability: no card, resource or prompt has that name, or the caller may not know of it.
	UnknownCapability FaultKind = "unknown_capability"
	// BuildFailed: a card could not be made.
	BuildFailed FaultKind = "build_failed"
	// BridgeFault: mounting, listing or calling a server went wrong.
	BridgeFault FaultKind = "bridge"
	// Backend: something Drawbridge needs (a store, a file) is missing or broken.
	Backend FaultKind = "backend"
)

// A FaultCode says what a caller can do about a fault. The seven codes are the one gate for retries.
type FaultCode string

// The seven codes.
const (
	Transient     FaultCode = "transient"
	RateLimited   FaultCode = "rate_limited"
	ServerError   FaultCode = "server_error"
	InvalidInput  FaultCode = "invalid_input"
	AuthFailure   FaultCode = "auth_failure"
	NotFound      FaultCode = "not_found"
	PolicyBlocked FaultCode = "policy_blocked"
)

// Retryable says whether the same call may succeed later. Whether it may be repeated at all depends on the card too,
// see [Fault.MayRetry].
func (c FaultCode) Retryable() bool {
	return c == Transient || c == RateLimited || c == ServerError
}

// A Fault is an error that may cross a border: it has a code, says the step and then the cause, and names the next
// thing to do where there is one. Any other error shows outside as "internal error".
type Fault struct {
	Kind FaultKind
	Code FaultCode
	// Step is what was being done, to what: "mount github".
	Step string
	// Err is the cause; nil where the step says it all.
	Err error
	// Next is what a person can do now; empty where there is nothing.
	Next string
	// Ambiguous says that the request was sent and its outcome is unknown: it may have taken effect.
	Ambiguous bool
	// Raw is a JSON-RPC error object that a peer answered with. It is passed on unchanged.
	Raw json.RawMessage
}

// Error gives step, cause and next step in one line.
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

// MayRetry says whether the call that ended so may be made once more: where it may succeed later, and, if its outcome
// is not known, where twice is as good as once. Harmless says that: the call only reads, or its tool says that it is
// read-only or idempotent. Every repetition of what was sent asks here.
func (f *Fault) MayRetry(harmless bool) bool { return f.Code.Retryable() && (harmless || !f.Ambiguous) }

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// AsFault finds the fault in err, or makes one that hides the cause from the outside: a ServerError "internal error"
// which still wraps err for logs. It returns nil for nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return &Fault{Kind: Backend, Code: ServerError, Step: "internal error", Err: hiddenCause{err}}
}

// hiddenCause keeps a cause for errors.Is and logs, but not for readers outside.
type hiddenCause struct{ error }

func (h hiddenCause) Error() string { return "see the log" }
func (h hiddenCause) Unwrap() error { return h.error }
