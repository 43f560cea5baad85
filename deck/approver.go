package deck

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// An Approver asks a person whether a call is allowed. It does not send the question to the client that made the call,
// because the client could answer for the person.
type Approver interface {
	// Approve waits until a person has allowed or denied the request. It returns immediately if an earlier approval
	// covers the request. A nil error permits the deck to send the call once. After any other error the deck refuses
	// the call. The error is a *drawbridge.Fault with the reason and the next step. The deck stores the returned
	// ApprovalAnswer in the audit, also after an error. Approve returns when ctx ends.
	Approve(ctx context.Context, r ApprovalRequest) (ApprovalAnswer, error)
}

// An ApprovalAnswer identifies the answer that allowed or refused a call.
type ApprovalAnswer struct {
	// ID is the ID of the answered request, or of the earlier grant that covers the call. By names the person who
	// answered and the program in which the person answered. Both may be empty.
	ID, By string
}

// An ApprovalRequest describes a call that needs the approval of a person.
type ApprovalRequest struct {
	// Call is the call as the caller sent it, with its Method set. The approver may send progress notifications to
	// Call.Peer, but not requests.
	Call drawbridge.Call
	// Spec is the target of the call, with the definition that the person approves.
	Spec drawbridge.Spec
	// Origin is the location of the server's configuration, and ConfigHash is its hash. Both are empty for a shipped card.
	// An approval for one server is not valid for another server of the same name.
	Origin, ConfigHash string
	// Reason is why the guards require an approval. Rule has the names of the rules that require it, separated by "; ".
	// Either may be empty.
	Reason, Rule string
	// Progress is the highest progress of Call that its client was told; progress must increase. It is 0 for a call that
	// reported none.
	Progress int
	// Run identifies the run of a script that asks, and how far it is. If it is set, the same request of the run after an
	// interruption continues the earlier one: a person is not asked twice.
	Run string
	// StillValid reports whether the target still exists with the same definition. The approver must call it before it
	// applies an approval, so that an approval is not used up for a changed target.
	StillValid func() bool
}

// askApprover asks the approver a, which may be nil, for a person's approval of a call. verdicts are the guards'
// verdicts that require the approval. They supply r.Reason and r.Rule. Any error, including a recovered panic of the
// approver, means that the call must be refused.
func askApprover(ctx context.Context, a Approver, r ApprovalRequest, verdicts []drawbridge.Verdict,
	log *slog.Logger) (answer ApprovalAnswer, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("an approver panicked, the call is refused", "card", r.Spec.Name, "panic", panicMessage(p), "at",
				panicLocation())
			answer, err = ApprovalAnswer{}, errors.New("a person could not be asked")
		}
	}()
	r.Reason = joinDistinct(verdicts, func(v drawbridge.Verdict) string { return v.Reason })
	r.Rule = joinDistinct(verdicts, func(v drawbridge.Verdict) string { return v.Rule })
	switch {
	case a != nil:
		return a.Approve(ctx, r)
	case r.Reason == "":
		return ApprovalAnswer{}, errNoApprover
	}
	return ApprovalAnswer{}, errors.New(r.Reason)
}

var errNoApprover = errors.New("it needs an approval, and no approver is configured")

// joinDistinct calls of on each element, and joins the distinct non-empty results with "; ".
func joinDistinct[T any](all []T, of func(T) string) string {
	var words []string
	for _, one := range all {
		if word := of(one); word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}
