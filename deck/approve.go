package deck

import (
	"bytes"
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/approval"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
)

// An Approver asks a person about calls that guards want asked about: out of band, so that who calls cannot answer.
type Approver = approval.Approver

// An ApprovalRequest is a call that waits for a person.
type ApprovalRequest = approval.Request

// An ApprovalAnswer says by which answer a call was let pass, or was not.
type ApprovalAnswer = approval.Answer

// approve has a person asked about a call. Whatever is not a clear yes is a no.
func (d *Deck) approve(ctx context.Context, call drawbridge.Call, t target, verdicts []drawbridge.Verdict) error {
	spec := t.spec
	r := ApprovalRequest{Call: call, Spec: spec}
	if m := d.view.Load().member(spec.Server); m != nil {
		r.Origin, r.Row = m.Origin, m.Row
	}
	r.Still = func() bool { return d.still(call.Caller, t, r.Row) }
	answer, err := approval.Ask(ctx, d.approver, r, verdicts, d.log)
	trail.Answered(ctx, answer.ID, answer.By)
	if _, ok := errors.AsType[*drawbridge.Fault](err); err != nil && !ok {
		return gate.Barred(call.Method, spec, drawbridge.Verdict{}, err)
	}
	return err
}

// still says whether what a call is about is there for its caller, on the server of that row, says of itself what it said, and
// waits for nobody.
func (d *Deck) still(caller drawbridge.Caller, t target, row string) bool {
	v := d.view.Load()
	m := v.member(t.spec.Server)
	if t.spec.Server != "" && (m == nil || m.Row != row || !caller.Holds(m.scopes)) {
		return false
	}
	s := map[string]*shelf{tools.word: v.tools, prompts.word: v.prompts}[t.kind]
	if s == nil {
		return !v.hides(caller, t)
	}
	it := s.find(caller, string(t.spec.Name))
	return it != nil && it.spec.Server == t.spec.Server && it.spec.Tool == t.spec.Tool && it.offer.Held == "" &&
		bytes.Equal(it.spec.Definition, t.spec.Definition)
}
