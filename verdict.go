package drawbridge

// An Effect is the outcome a guard wants for a call.
type Effect uint8

// The effects. The zero value denies, so a verdict that was never set is a refusal.
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

// A Verdict is a guard's decision on a caller, a card and arguments.
type Verdict struct {
	Effect Effect
	// Reason is for the audit and, unless Hide is set, for the caller.
	Reason string
	// Rule names the rule that decided, for "policy explain".
	Rule string
	// Code tells a caller how to react to a refusal; empty means PolicyBlocked. Next is the next thing to do, for
	// people and models; empty if there is nothing.
	Code FaultCode
	Next string
	// Hide makes the refusal look like a name that does not exist.
	Hide bool
}
