package deck

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A CallCollector is the Peer of a call that a script makes. If the call needs an approval, the deck calls Collect in
// place of the approver. So the script can go on, and a person is asked about many calls at once, see
// [Deck.ApproveScript].
type CallCollector interface {
	drawbridge.Peer
	// Collect waits until a person has decided about the call. Its results are those of [Approver.Approve].
	Collect(ctx context.Context, r ApprovalRequest) (ApprovalAnswer, error)
}

// A ForeignListener is the Peer of a call that a script makes. The deck calls NoteForeign before it sends a call whose
// result the caller that started the script would get marked as foreign texts. The script gets that result unmarked, and
// its own result must be marked.
type ForeignListener interface {
	drawbridge.Peer
	NoteForeign()
}

// A ScriptApproval is the request to approve collected calls of a script, about which a person decides together. Of the
// embedded request, Call is the call that runs the script and Spec is the tool that runs it; [Deck.ApproveScript] sets
// Reason, Rule and StillValid.
type ScriptApproval struct {
	ApprovalRequest
	// Script is the whole text of the script.
	Script string
	// Input is the JSON object that the script reads as its arguments; nil for none.
	Input json.RawMessage
	// Requests are the collected calls in the order in which they will be sent. Lines are the lines of the script that
	// made them; 0 stands for an unknown line.
	Requests []ApprovalRequest
	Lines    []int
	// Allowed is how many calls of each tool were allowed earlier in this run of the script.
	Allowed map[drawbridge.CardName]int
}

// A ScriptApprover is an [Approver] that can ask about all collected calls of a script at once.
type ScriptApprover interface {
	Approver
	// ApproveScript waits until a person has allowed all the calls. Each of them may then be sent once. Its results are
	// those of [Approver.Approve].
	ApproveScript(ctx context.Context, a ScriptApproval) (ApprovalAnswer, error)
	// UseScriptGrant reports whether an earlier grant for calls of the script covers the one call in a.Requests, and
	// counts the call. It never waits for a person. If granted is true, the call may be sent once. After an error the
	// call must be refused.
	UseScriptGrant(ctx context.Context, a ScriptApproval) (answer ApprovalAnswer, granted bool, err error)
}

// ApproveScript asks the deck's approver about collected calls. It returns an error if the calls must not be sent, also
// if the approver cannot ask about several calls.
func (d *Deck) ApproveScript(ctx context.Context, a ScriptApproval) (ApprovalAnswer, error) {
	approver, ok := d.approver.(ScriptApprover)
	if !ok {
		return ApprovalAnswer{}, errNoApprover
	}
	a.Reason = joinDistinct(a.Requests, func(r ApprovalRequest) string { return r.Reason })
	a.Rule = joinDistinct(a.Requests, func(r ApprovalRequest) string { return r.Rule })
	a.StillValid = stillValid(a.Requests)
	return approver.ApproveScript(ctx, a)
}

// UseScriptGrant asks the deck's approver whether an earlier grant covers a call of a script, see [ScriptApprover]. If
// the approver has no such grants, granted is false.
func (d *Deck) UseScriptGrant(ctx context.Context, a ScriptApproval) (answer ApprovalAnswer, granted bool, err error) {
	approver, ok := d.approver.(ScriptApprover)
	if !ok {
		return ApprovalAnswer{}, false, nil
	}
	a.StillValid = stillValid(a.Requests)
	return approver.UseScriptGrant(ctx, a)
}

// stillValid returns a function that reports whether all the requests are still valid.
func stillValid(all []ApprovalRequest) func() bool {
	return func() bool { return !slices.ContainsFunc(all, func(r ApprovalRequest) bool { return !r.StillValid() }) }
}

// A collectorApprover is the collector of a script as an Approver.
type collectorApprover struct{ collector CallCollector }

// Approve implements [Approver].
func (c collectorApprover) Approve(ctx context.Context, r ApprovalRequest) (ApprovalAnswer, error) {
	return c.collector.Collect(ctx, r)
}
