package deck

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// An Approver asks a person about calls, out of band, so that the caller cannot answer.
type Approver interface {
	// Approve waits until a person has allowed the request, which is then sent once. It returns at once if an earlier
	// approval covers it. An error means no: a *drawbridge.Fault with the reason and the next step. The answer is for
	// the audit and may accompany an error. Approve ends with ctx.
	Approve(ctx context.Context, r ApprovalRequest) (ApprovalAnswer, error)
}

// An ApprovalAnswer identifies the answer that allowed or refused a call.
type ApprovalAnswer struct {
	// ID is the id of the answered request or of the grant. By names the person and the place of the answer. Both may
	// be empty.
	ID, By string
}

// An ApprovalRequest is a call that waits for a person.
type ApprovalRequest struct {
	// Call is the call as the caller sent it, with its Method set. Its Peer may receive progress, and must not be
	// asked.
	Call drawbridge.Call
	// Spec is the target, with the definition that the person judges.
	Spec drawbridge.Spec
	// Origin is the place of the server's configuration and ConfigHash its hash; both are empty for a shipped card. An
	// approval for one server does not hold for another server of the same name.
	Origin, ConfigHash string
	// Reason is why the guards want approval, and Rule names their rules. Either may be empty.
	Reason, Rule string
	// StillValid reports whether the target still exists with the same definition. Call it before an approval is used
	// up.
	StillValid func() bool
}

// askApprover asks a person about a call for these verdicts. Any error means no, and so does a panic, which is logged.
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

// joinDistinct joins the distinct texts that of returns for the verdicts.
func joinDistinct(verdicts []drawbridge.Verdict, of func(drawbridge.Verdict) string) string {
	var words []string
	for _, v := range verdicts {
		if word := of(v); word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}
