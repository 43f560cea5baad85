package drawbridge

// An Effect is what a guard wants done with a call.
type Effect uint8

// The effects. The zero value denies: a verdict nobody gave is a refusal.
const (
	Deny Effect = iota
	Ask
	Allow
)

// String gives the effect in lower case.
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// A Verdict is what a guard says of (caller, card, arguments).
type Verdict struct {
	Effect Effect
	// Reason is for the audit and, unless Hide is set, for the caller.
	Reason string
	// Rule names what decided, for "policy explain".
	Rule string
	// Code says what a caller can do about a refusal; empty means PolicyBlocked. Next is the next thing to do, for
	// people and models; empty where there is nothing.
	Code FaultCode
	Next string
	// Hide makes the refusal look like a name that does not exist.
	Hide bool
}
