package deck

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// openParams opens the sealed request state that the caller sent back. It also looks for arguments that use the
// server's own name instead of the listed name. If it finds an invalid state or such an argument, it sets paramsErr and
// returns nil. checkGuards then refuses the call after the guards have decided, and the audit records the refusal.
func (d *Deck) openParams(_ context.Context, s *callState) error {
	t := &s.target
	s.binding = stateBinding{
		Principal: s.call.Caller.Principal, Server: t.spec.Server, Method: s.call.Method, Own: t.ownName,
		Arguments: s.params.Arguments,
	}
	if s.params.State != nil {
		state, err := d.sealer.openState(s.params.State, s.binding)
		if t.edits = append(t.edits, rawjson.Put(state, "requestState")); err != nil {
			t.paramsErr = fmt.Errorf("requestState: %w", err)
		}
	}
	if name, ok := findRenamedArgument(s.call.Params, t.ownArguments); ok {
		t.paramsErr = fmt.Errorf("the arguments have %q, which has another name here", clipText(name))
	}
	return nil
}

// question returns the question that the guards must answer for the call.
func (s *callState) question() Question {
	return Question{Caller: withoutProof(s.call.Caller), Kind: s.target.kind, Spec: s.target.spec, Method: s.call.Method,
		Params: s.call.Params}
}

// refuse adds the verdict that denies the call to the call's audit entry. It returns err unchanged.
func (s *callState) refuse(verdict drawbridge.Verdict, err error) error {
	s.log.NoteRefusal(s.target.spec, verdict)
	return err
}

// checkGuards asks the guards, except for a call of a search tool, which is always allowed. It returns an error if a
// guard denies the call, or if heldVerdict refuses the target. Otherwise s.asked has the verdicts that require a
// person's approval, and s.verdict is the first of them. If no approval is required, s.verdict is the last verdict that
// names a rule, or a plain allow.
func (d *Deck) checkGuards(ctx context.Context, s *callState) (err error) {
	if s.target.searches {
		s.verdict = drawbridge.Verdict{Effect: drawbridge.Allow}
		return nil
	}
	if s.verdict, s.asked, err = d.guards.check(ctx, s.question()); err != nil {
		return s.refuse(s.verdict, err)
	}
	if verdict, err := s.target.heldVerdict(s.call.Method); err != nil {
		return s.refuse(verdict, err)
	}
	return nil
}

// approve does nothing if no guard requires an approval. Otherwise it asks a person for the approval. It then asks the
// guards again, because the rules may have changed while it waited for the person.
func (d *Deck) approve(ctx context.Context, s *callState) error {
	if len(s.asked) == 0 {
		return nil
	}
	if err := d.requestApproval(ctx, s); err != nil {
		return s.refuse(s.verdict, err)
	}
	if verdict, _, err := d.guards.check(ctx, s.question()); err != nil {
		return s.refuse(verdict, err)
	}
	return nil
}

// countCall asks the counting guards, which count the call or refuse it. They receive the arguments under the server's
// own names, because the upstream later reports the outcome of the call under these names. With listed names, a guard
// could not match the call with its outcome.
func (d *Deck) countCall(ctx context.Context, s *callState) error {
	s.argumentEdits = argumentNameEdits(s.call.Params, s.target.ownArguments)
	q := s.question()
	q.Params = rawjson.Apply(q.Params, s.argumentEdits...)
	if verdict, err := d.guards.countCall(ctx, q); err != nil {
		return s.refuse(verdict, err)
	}
	return nil
}

// recordIntent writes an audit record before the call is sent. If the record cannot be written, it returns an error,
// and the call is not sent.
func (d *Deck) recordIntent(ctx context.Context, s *callState) error {
	d.noteLabel(ctx, s)
	return s.log.RecordIntent(s.call, s.params.Arguments, s.target.spec, s.verdict)
}

// requestApproval asks a person to approve the call. It returns nil if the person approved the call, and otherwise an
// error.
func (d *Deck) requestApproval(ctx context.Context, s *callState) error {
	spec := s.target.spec
	r := ApprovalRequest{Call: s.call, Spec: spec}
	if m := d.view.Load().server(spec.Server); m != nil {
		r.Origin, r.ConfigHash = m.Origin, m.ConfigHash
	}
	caller, target := s.call.Caller, s.target
	r.StillValid = func() bool { return d.targetUnchanged(caller, target, r.ConfigHash) }
	approver := d.approver
	if c, ok := s.call.Peer.(CallCollector); ok && caller.Kind == drawbridge.Sandbox {
		approver = collectorApprover{c}
	}
	answer, err := askApprover(ctx, approver, r, s.asked, d.log)
	s.log.NoteApproval(answer.ID, answer.By)
	if _, ok := errors.AsType[*drawbridge.Fault](err); err != nil && !ok {
		return refusalFault(s.call.Method, spec, drawbridge.Verdict{}, err)
	}
	if err == nil {
		err = d.tellApproved(ctx, s, answer.By)
	}
	return err
}

// targetUnchanged reports whether a target may be called as it was when the approval was requested. The target must
// still be visible to the caller, and the configuration of its server must have the hash configHash. A tool or prompt
// must also have the same definition and must not be held.
func (d *Deck) targetUnchanged(caller drawbridge.Caller, t callTarget, configHash string) bool {
	v := d.view.Load()
	m := v.server(t.spec.Server)
	if t.spec.Server != "" && (m == nil || m.ConfigHash != configHash || !caller.HasScopes(m.scopes)) {
		return false
	}
	index := map[string]*itemIndex{tools.word: v.tools, prompts.word: v.prompts}[t.kind]
	if index == nil {
		return !v.hidesTarget(caller, t)
	}
	it := index.findByName(caller, string(t.spec.Name))
	return it != nil && it.spec.Server == t.spec.Server && it.spec.Tool == t.spec.Tool && it.offer.heldReason == "" &&
		bytes.Equal(it.spec.Definition, t.spec.Definition)
}

// heldVerdict returns a verdict and an error that refuse the call, if heldReason or paramsErr is set. Otherwise the
// error is nil.
func (t *callTarget) heldVerdict(method string) (drawbridge.Verdict, error) {
	switch {
	case t.heldReason != "":
		verdict := drawbridge.Verdict{Rule: "held", Reason: t.heldReason, Next: t.nextStep}
		return verdict, refusalFault(method, t.spec, verdict, errors.New(t.heldReason))
	case t.paramsErr != nil:
		return drawbridge.Verdict{Rule: "state", Reason: t.paramsErr.Error()}, invalidParamsFault(method, t.paramsErr)
	}
	return drawbridge.Verdict{}, nil
}
