package deck

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// openParams opens the sealed request state that the caller sent back, and looks for argument names that were not
// listed. An invalid state or name is stored in paramsErr. The guard stage refuses the call later, so that the guards
// decide first and the call is recorded.
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
	return Question{Caller: s.call.Caller, Kind: s.target.kind, Spec: s.target.spec, Method: s.call.Method,
		Params: s.call.Params}
}

// refuse adds the verdict to the audit entry, and returns err.
func (s *callState) refuse(verdict drawbridge.Verdict, err error) error {
	s.log.NoteRefusal(s.target.spec, verdict)
	return err
}

// checkGuards asks the guards. Each guard must allow the call or require a person's approval. s.verdict is set to the
// last verdict that names a rule, or to the first verdict that requires an approval.
func (d *Deck) checkGuards(ctx context.Context, s *callState) (err error) {
	if s.target.findTools {
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

// approve asks a person if guards require an approval. Then it asks the guards again, because the rules may have
// changed in the meantime.
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

// countCall asks the counting guards, which may also refuse the call. They receive the arguments under the server's
// names. The upstream reports the outcome of the call with these names too, so that both counts match.
func (d *Deck) countCall(ctx context.Context, s *callState) error {
	s.argumentEdits = argumentNameEdits(s.call.Params, s.target.ownArguments)
	q := s.question()
	q.Params = rawjson.Apply(q.Params, s.argumentEdits...)
	if verdict, err := d.guards.countCall(ctx, q); err != nil {
		return s.refuse(verdict, err)
	}
	return nil
}

// recordIntent writes an audit record that the call will be sent. If the record cannot be written, the call is not
// sent.
func (d *Deck) recordIntent(_ context.Context, s *callState) error {
	return s.log.RecordIntent(s.call, s.params.Arguments, s.target.spec, s.verdict)
}

// requestApproval asks a person about the call. Any answer other than an approval refuses the call.
func (d *Deck) requestApproval(ctx context.Context, s *callState) error {
	spec := s.target.spec
	r := ApprovalRequest{Call: s.call, Spec: spec}
	if m := d.view.Load().server(spec.Server); m != nil {
		r.Origin, r.ConfigHash = m.Origin, m.ConfigHash
	}
	caller, target := s.call.Caller, s.target
	r.StillValid = func() bool { return d.targetUnchanged(caller, target, r.ConfigHash) }
	answer, err := askApprover(ctx, d.approver, r, s.asked, d.log)
	s.log.NoteApproval(answer.ID, answer.By)
	if _, ok := errors.AsType[*drawbridge.Fault](err); err != nil && !ok {
		return refusalFault(s.call.Method, spec, drawbridge.Verdict{}, err)
	}
	return err
}

// targetUnchanged reports whether the target is still visible to the caller, has the same definition, and is not
// quarantined. The configuration of its server must also have this hash.
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

// heldVerdict returns a refusal for a quarantined target, or for params with a state or a name that the deck did not
// give to the caller.
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
