package drawbridge

// An Effect is a guard's decision on a call: to deny it, to ask a person for approval, or to allow it.
type Effect uint8

// The effects. The zero value is Deny, so a verdict that was never set is a refusal.
const (
	Deny Effect = iota
	Ask
	Allow
)

// String returns the effect in lower case.
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// A Verdict is a guard's decision on a call, with its reason. A guard decides by the caller, the card and the
// arguments.
type Verdict struct {
	Effect Effect
	// Reason explains the decision in the audit and, unless Hide is set, to the caller.
	Reason string
	// Rule identifies the rule or the limit that decided, such as "quota"; empty if none did.
	Rule string
	// Code is the code of the fault that the caller of a denied call receives; empty means PolicyBlocked. Next tells
	// people and models what to do next; empty without a hint.
	Code FaultCode
	Next string
	// Hide makes the caller of a denied call receive the same error as for a name that does not exist.
	Hide bool
}
