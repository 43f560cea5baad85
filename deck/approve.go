package deck

import (
	"bytes"
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/approval"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/mishap"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An Approver asks a person about calls that guards want asked about: out of band, so that who calls cannot answer.
type Approver = approval.Approver

// An ApprovalRequest is a call that waits for a person.
type ApprovalRequest = approval.Request

// approve has a person asked about a call. Whatever is not a clear yes is a no.
func (d *Deck) approve(ctx context.Context, call drawbridge.Call, spec drawbridge.Spec, verdicts []drawbridge.Verdict) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("an approver panicked, the call is refused", "card", spec.Name, "panic", mishap.What(p), "at", mishap.Where())
			err = gate.Barred(call.Method, spec, drawbridge.Verdict{}, errors.New("a person could not be asked"))
		}
	}()
	r := ApprovalRequest{Call: call, Spec: spec, Still: func() bool { return d.still(call, spec) }}
	err = approval.Ask(ctx, d.approver, r, verdicts)
	if _, ok := errors.AsType[*drawbridge.Fault](err); err != nil && !ok {
		return gate.Barred(call.Method, spec, drawbridge.Verdict{}, err)
	}
	return err
}

// still says whether what a call is about is there for its caller, and says of itself what spec does.
func (d *Deck) still(call drawbridge.Call, spec drawbridge.Spec) bool {
	v := d.view.Load()
	list := map[string]*shelf{wire.MethodToolsCall: v.tools, wire.MethodPromptsGet: v.prompts}[call.Method]
	if list == nil {
		m := v.member(spec.Server)
		return m != nil && call.Caller.Holds(m.scopes)
	}
	it := list.find(call.Caller, string(spec.Name))
	return it != nil && it.spec.Server == spec.Server && it.spec.Tool == spec.Tool && bytes.Equal(it.spec.Definition, spec.Definition)
}
