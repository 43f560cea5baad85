package deck

import (
	"bytes"
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

// requestApproval has a person asked about a call. Whatever is not a clear yes is a no.
func (d *Deck) requestApproval(ctx context.Context, call drawbridge.Call, t callTarget,
	verdicts []drawbridge.Verdict) error {
	spec := t.spec
	r := ApprovalRequest{Call: call, Spec: spec}
	if m := d.view.Load().server(spec.Server); m != nil {
		r.Origin, r.ConfigHash = m.Origin, m.ConfigHash
	}
	r.StillValid = func() bool { return d.targetUnchanged(call.Caller, t, r.ConfigHash) }
	answer, err := askApprover(ctx, d.approver, r, verdicts, d.log)
	audit.NoteApproval(ctx, answer.ID, answer.By)
	if _, ok := errors.AsType[*drawbridge.Fault](err); err != nil && !ok {
		return refusalFault(call.Method, spec, drawbridge.Verdict{}, err)
	}
	return err
}

// targetUnchanged says whether what a call is about is there for its caller, on the server of that row, says of itself
// what it said, and waits for nobody.
func (d *Deck) targetUnchanged(caller drawbridge.Caller, t callTarget, row string) bool {
	v := d.view.Load()
	m := v.server(t.spec.Server)
	if t.spec.Server != "" && (m == nil || m.ConfigHash != row || !caller.HasScopes(m.scopes)) {
		return false
	}
	s := map[string]*itemIndex{tools.word: v.tools, prompts.word: v.prompts}[t.kind]
	if s == nil {
		return !v.hidesTarget(caller, t)
	}
	it := s.findByName(caller, string(t.spec.Name))
	return it != nil && it.spec.Server == t.spec.Server && it.spec.Tool == t.spec.Tool && it.offer.heldReason == "" &&
		bytes.Equal(it.spec.Definition, t.spec.Definition)
}
