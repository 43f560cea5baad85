// Package approval is where a call waits for a person, as the deck sees it: guards want them asked, an [Approver] asks.
//
// It promises that a call which nobody allowed does not pass: where there is no approver, or it fails, the answer is no.
package approval

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/mishap"
)

// An Approver asks a person about calls: out of band, so that who calls cannot answer.
type Approver interface {
	// Approve waits until a person has allowed the request; after it the call is sent, once. No error at once means that it was
	// allowed before. An error means no: a *drawbridge.Fault that says why, and what to do next. The answer is for the record,
	// and may be given with either. It ends with ctx.
	Approve(ctx context.Context, r Request) (Answer, error)
}

// An Answer says by which answer a call was let pass, or was not.
type Answer struct {
	// ID is of the question that was answered, or of the grant; By is who answered, and where. Both may be empty.
	ID, By string
}

// A Request is a call that waits for a person.
type Request struct {
	// Call is as the caller sent it, but for its Method. Its Peer may be told of progress; nobody may ask it.
	Call drawbridge.Call
	// Spec is what is called, with its definition as the person is to judge it.
	Spec drawbridge.Spec
	// Origin says where the row of its server stands, Row is the hash of the row; both are empty for a shipped card. A yes for
	// one server is none for another that goes by its name.
	Origin, Row string
	// Reason says why the guards want a person asked, Rule which of their rules does. Either may be empty.
	Reason, Rule string
	// Still says whether what is called is still there and defined as it was. It is to be asked before a yes is used up.
	Still func() bool
}

// Ask has a person asked about a call that these verdicts are about: every one says ask. Any error is no, and so is a panic of
// the approver's, of which the log is told.
func Ask(ctx context.Context, a Approver, r Request, verdicts []drawbridge.Verdict, log *slog.Logger) (answer Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("an approver panicked, the call is refused", "card", r.Spec.Name, "panic", mishap.What(p), "at", mishap.Where())
			answer, err = Answer{}, errors.New("a person could not be asked")
		}
	}()
	r.Reason = joined(verdicts, func(v drawbridge.Verdict) string { return v.Reason })
	r.Rule = joined(verdicts, func(v drawbridge.Verdict) string { return v.Rule })
	switch {
	case a != nil:
		return a.Approve(ctx, r)
	case r.Reason == "":
		return Answer{}, errNobody
	}
	return Answer{}, errors.New(r.Reason)
}

var errNobody = errors.New("it needs an approval, and there is nobody to ask")

// joined gives what the verdicts say, each thing once.
func joined(verdicts []drawbridge.Verdict, of func(drawbridge.Verdict) string) string {
	var words []string
	for _, v := range verdicts {
		if word := of(v); word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, "; ")
}
