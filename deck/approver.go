package deck

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// An Approver asks a person whether a call is allowed. It does not ask through the caller, so that the caller cannot
// answer.
type Approver interface {
	// Approve waits until a person has allowed the request, or returns immediately if an earlier approval covers it. Each
	// approved request is sent once. An error means that the call is refused. It is a *drawbridge.Fault with the reason
	// and the next step. The answer is stored in the audit, and may be set together with an error. Approve returns when
	// ctx ends.
	Approve(ctx context.Context, r ApprovalRequest) (ApprovalAnswer, error)
}

// An ApprovalAnswer identifies the answer that allowed or refused a call.
type ApprovalAnswer struct {
	// ID is the ID of the answered request or of the grant. By names the person and the place of the answer. Both may be
	// empty.
	ID, By string
}

// An ApprovalRequest describes a call that needs the approval of a person.
type ApprovalRequest struct {
	// Call is the call as the caller sent it, with its Method set. Call.Peer may receive progress notifications, but no
	// requests.
	Call drawbridge.Call
	// Spec is the target of the call, with the definition that the person approves.
	Spec drawbridge.Spec
	// Origin is the location of the server's configuration, and ConfigHash is its hash. Both are empty for a shipped card.
	// An approval for one server is not valid for another server of the same name.
	Origin, ConfigHash string
	// Reason is why the guards require an approval. Rule names the rules that require it. Either may be empty.
	Reason, Rule string
	// StillValid reports whether the target still exists with the same definition. The approver must call it before it
	// uses up an approval.
	StillValid func() bool
}

// askApprover asks a person to approve a call. verdicts are the verdicts that require the approval. Any error means
// that the call is refused. A panic of the approver is logged and returned as an error.
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

// joinDistinct joins the distinct results of calling of on each verdict.
func joinDistinct(verdicts []drawbridge.Verdict, of func(drawbridge.Verdict) string) string {
	var words []string
	for _, v := range verdicts {
		if word := of(v); word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}
