package deck

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// An Approver asks a person about calls: out of band, so that who calls cannot answer.
type Approver interface {
	// Approve waits until a person has allowed the request; after it the call is sent, once. No error at once means
	// that it was allowed before. An error means no: a *drawbridge.Fault that says why, and what to do next. The
	// answer is for the record, and may be given with either. It ends with ctx.
	Approve(ctx context.Context, r ApprovalRequest) (ApprovalAnswer, error)
}

// An ApprovalAnswer says by which answer a call was let pass, or was not.
type ApprovalAnswer struct {
	// ID is of the question that was answered, or of the grant; By is who answered, and where. Both may be empty.
	ID, By string
}

// A ApprovalRequest is a call that waits for a person.
type ApprovalRequest struct {
	// Call is as the caller sent it, but for its Method. Its Peer may be told of progress; nobody may ask it.
	Call drawbridge.Call
	// Spec is what is called, with its definition as the person is to judge it.
	Spec drawbridge.Spec
	// Origin says where the row of its server stands, Row is the hash of the row; both are empty for a shipped card. A
	// yes for one server is none for another that goes by its name.
	Origin, ConfigHash string
	// Reason says why the guards want a person asked, Rule which of their rules does. Either may be empty.
	Reason, Rule string
	// StillValid says whether what is called is still there and defined as it was. It is to be asked before a yes is
	// used up.
	StillValid func() bool
}

// askApprover has a person asked about a call that these verdicts are about: every one says ask. Any error is no, and
// so is a panic of the approver's, of which the log is told.
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

var errNoApprover = errors.New("it needs an approval, and there is nobody to ask")

// joinDistinct gives what the verdicts say, each thing once.
func joinDistinct(verdicts []drawbridge.Verdict, of func(drawbridge.Verdict) string) string {
	var words []string
	for _, v := range verdicts {
		if word := of(v); word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}
