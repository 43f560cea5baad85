package guards

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

var _ deck.ScriptApprover = (*ApprovalQueue)(nil)

// A ScriptEffect has the collected calls of one tool in [ApprovalDetails]. Its texts are as unchecked as those of the
// details.
type ScriptEffect struct {
	// Card, Server, Tool and Definition are as in ApprovalDetails.
	Card       string `json:"card"`
	Server     string `json:"server,omitempty"`
	Tool       string `json:"tool,omitempty"`
	Definition string `json:"definition"`
	// Constant are the arguments that all the calls have with the same value, with likely secrets redacted. It is nil if
	// there are none.
	Constant json.RawMessage `json:"constant,omitempty"`
	// Calls are the calls with their other arguments.
	Calls []ScriptCall `json:"calls"`
	// Earlier is the number of calls of the tool that were allowed earlier in this run of the script. Grants are the
	// grants for calls of the tool by the script.
	Earlier int         `json:"earlier,omitempty"`
	Grants  []GrantUses `json:"grants,omitempty"`
	// Pattern is the smallest pattern that covers the arguments of all calls. It is nil if no grant with a count can
	// cover them, because servers may read their arguments in different ways.
	Pattern *ArgumentPattern `json:"pattern,omitempty"`
	// Subject is the hash of the caller, the script and the tool, to which a grant with a count is bound.
	Subject string `json:"subject"`

	// arguments are the arguments of the calls; an element is nil if it cannot be compared. whole are the same arguments
	// as the caller sent them.
	arguments []callArguments
	whole     []json.RawMessage
}

// A ScriptCall is one call of a script.
type ScriptCall struct {
	// Number is the place of the call among all calls of the request, from 1. Calls are sent in this order.
	Number int `json:"number"`
	// Line is the line of the script that makes the call; 0 if it is unknown.
	Line int `json:"line,omitempty"`
	// Arguments are the arguments that are not in Constant, with likely secrets redacted.
	Arguments json.RawMessage `json:"arguments"`
}

// GrantUses is the use of a grant with a count: the calls that it has allowed, and the maximum.
type GrantUses struct {
	ID   string `json:"id"`
	Uses int    `json:"uses"`
	Max  int    `json:"maximum"`
}

// ApproveScript asks a person about all collected calls of a script with one request. The answer is for exactly these
// calls and this script. A grant for the request covers the same script with the same calls, unless it has a count: see
// UseScriptGrant.
func (d *ApprovalQueue) ApproveScript(ctx context.Context, s deck.ScriptApproval) (deck.ApprovalAnswer, error) {
	q, err := newScriptQuestion(s)
	if err != nil {
		return deck.ApprovalAnswer{}, refusalFault(s.ApprovalRequest, err, "let the script do less at a time")
	}
	for _, e := range q.effects {
		grants, err := d.DB.CountedGrants(ctx, s.Call.Caller.Principal, sessionHash(s.Call.Caller), e.Subject)
		if err != nil {
			return deck.ApprovalAnswer{}, d.storeFault(ctx, s.ApprovalRequest, err)
		}
		for _, g := range grants {
			e.Grants = append(e.Grants, GrantUses{ID: g.ID, Uses: g.Uses, Max: g.Max})
		}
	}
	a, err := q.stored(s)
	if err != nil {
		return deck.ApprovalAnswer{}, refusalFault(s.ApprovalRequest, err, "")
	}
	return d.approvePending(ctx, s.ApprovalRequest, a)
}

// UseScriptGrant implements [deck.ScriptApprover]: it uses a grant with a maximum count. Such a grant covers a call of
// the same script with the same input, by the same caller, of the same tool with the same definition and configuration,
// and with arguments that its pattern covers.
func (d *ApprovalQueue) UseScriptGrant(ctx context.Context, s deck.ScriptApproval) (deck.ApprovalAnswer, bool, error) {
	if len(s.Requests) != 1 || asksForFlow(s.Requests[0].Rule) {
		return deck.ApprovalAnswer{}, false, nil
	}
	r := s.Requests[0]
	arguments, ok := comparableArguments(r)
	if !ok {
		return deck.ApprovalAnswer{}, false, nil
	}
	key := effectSubject(s, r)
	grants, err := d.DB.CountedGrants(ctx, s.Call.Caller.Principal, sessionHash(s.Call.Caller), key)
	if err != nil {
		return deck.ApprovalAnswer{}, false, d.storeFault(ctx, r, err)
	}
	for _, g := range grants {
		var p ArgumentPattern
		if err := json.Unmarshal([]byte(g.Pattern), &p); err != nil {
			d.Logger.Error("read the pattern of a grant: it is not used", "grant", g.ID, "err", err)
			continue
		}
		if g.Uses >= g.Max || !p.covers(key, arguments) || !s.StillValid() {
			continue
		}
		used, err := d.DB.UseCountedGrant(ctx, g)
		switch {
		case err != nil:
			return deck.ApprovalAnswer{}, false, d.storeFault(ctx, r, err)
		case used:
			return deck.ApprovalAnswer{ID: g.ID, By: g.By}, true, nil
		}
	}
	return deck.ApprovalAnswer{}, false, nil
}

// effectTarget returns the values that identify the tool of a call: an approval for it is not valid for another one.
func effectTarget(r deck.ApprovalRequest) []string {
	return []string{string(r.Spec.Server), r.Origin, r.ConfigHash, r.Spec.Tool, string(r.Spec.Name),
		sha256Hex(r.Spec.Definition)}
}

// scriptIdentity returns the values that identify a script of a caller. The input belongs to the script, because a script
// can run text in its input.
func scriptIdentity(s deck.ScriptApproval) []string {
	c := s.Call.Caller
	return []string{c.Kind.String(), c.Principal, sha256Hex([]byte(s.Script)), sha256Hex(s.Input)}
}

// effectSubject returns the Subject of the effect to which the call belongs.
func effectSubject(s deck.ScriptApproval, r deck.ApprovalRequest) string {
	return sha256Hex(rawjson.AppendStrings([]byte("script-effect "), append(scriptIdentity(s), effectTarget(r)...)...))
}

// comparableArguments returns the arguments of a call. ok is false if they cannot be compared with a pattern.
func comparableArguments(r deck.ApprovalRequest) (all callArguments, ok bool) {
	subject, err := approvalSubject(r.Call)
	if err != nil || r.Call.Method != mcp.MethodToolsCall {
		return nil, false
	}
	return readCallArguments(subject)
}

// A scriptQuestion is the question about the collected calls of a script. call and card are its hashes, see
// store.PendingApproval.
type scriptQuestion struct {
	effects    []*ScriptEffect
	counts     map[string]int
	call, card string
}

// newScriptQuestion returns the question about the collected calls. It returns an error if a person would have to read
// too much.
func newScriptQuestion(s deck.ScriptApproval) (*scriptQuestion, error) {
	q := &scriptQuestion{counts: map[string]int{}}
	size := len(s.Script) + len(s.Input)
	who, what := scriptIdentity(s), scriptIdentity(s)
	for i, one := range s.Requests {
		subject, err := approvalSubject(one.Call)
		if err != nil {
			return nil, err
		}
		size += len(subject)
		target := effectTarget(one)
		who, what = append(who, target...), append(append(what, target...), sha256Hex(subject))
		q.add(s, one, ScriptCall{Number: i + 1, Line: s.Lines[i]}, subject)
	}
	if size > maxApprovalArguments {
		return nil, fmt.Errorf("the script and its calls have %d bytes, more than a person can be asked to read", size)
	}
	q.call = sha256Hex(rawjson.AppendStrings([]byte("script "), what...))
	q.card = sha256Hex(rawjson.AppendStrings([]byte("script-tools "), who...))
	for _, e := range q.effects {
		e.findPattern()
	}
	return q, nil
}

// add adds a call to the effect of its tool.
func (q *scriptQuestion) add(s deck.ScriptApproval, r deck.ApprovalRequest, call ScriptCall, subject []byte) {
	shown, key := newApprovalDetails(r), effectSubject(s, r)
	q.counts[shown.Card]++
	var effect *ScriptEffect
	for _, e := range q.effects {
		if e.Subject == key {
			effect = e
		}
	}
	if effect == nil {
		effect = &ScriptEffect{Card: shown.Card, Server: shown.Server, Tool: shown.Tool, Definition: shown.Definition,
			Earlier: s.Allowed[r.Spec.Name], Subject: key}
		q.effects = append(q.effects, effect)
	}
	arguments, _ := comparableArguments(r)
	effect.Calls = append(effect.Calls, call)
	effect.arguments, effect.whole = append(effect.arguments, arguments), append(effect.whole, argumentsOnly(subject))
}

// findPattern sets the pattern of the calls, and separates the constant arguments from the others. If the arguments of a
// call cannot be compared, all calls are shown with all arguments.
func (e *ScriptEffect) findPattern() {
	p := newArgumentPattern(e.Subject, e.arguments)
	comparable := true
	for i, arguments := range e.arguments {
		comparable = comparable && arguments != nil
		e.Calls[i].Arguments = redactSecrets(e.whole[i])
	}
	if !comparable {
		return
	}
	e.Pattern = &p
	isConstant := func(name string) bool { return p.Constant[name] != "" }
	if len(p.Constant) > 0 {
		e.Constant = redactSecrets(selectArguments(e.whole[0], isConstant))
	}
	for i := range e.Calls {
		e.Calls[i].Arguments = redactSecrets(selectArguments(e.whole[i], func(name string) bool { return !isConstant(name) }))
	}
}

// selectArguments returns the object with the members whose names are selected, in their order.
func selectArguments(object json.RawMessage, selected func(name string) bool) json.RawMessage {
	out := json.RawMessage{'{'}
	for m := range rawjson.Members(object) {
		if name, _ := rawjson.DecodeString(m.Name); !selected(name) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.Name...), ':'), m.Value...)
	}
	return append(out, '}')
}

// stored returns the request for approval in the form in which the store holds it.
func (q *scriptQuestion) stored(s deck.ScriptApproval) (store.PendingApproval, error) {
	summary, err := json.Marshal(struct {
		Calls     map[string]int  `json:"calls"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{q.counts, redactSecrets(s.Input)})
	if err != nil {
		return store.PendingApproval{}, err
	}
	details := newApprovalDetails(s.ApprovalRequest)
	details.Digest, details.Arguments, details.Script = q.call, summary, s.Script
	for _, e := range q.effects {
		details.Effects = append(details.Effects, *e)
	}
	return newStoredApproval(s.Call.Caller, details, q.call, grantedCard(s.Rule, q.call, q.card))
}

// redact returns the effect with the redaction of the audit log.
func (e ScriptEffect) redact(rules *audit.RedactionRules) ScriptEffect {
	e.Card, e.Tool = rules.RedactText(e.Card), rules.RedactText(e.Tool)
	if e.Constant != nil {
		e.Constant = rules.Redact(e.Constant)
	}
	calls := make([]ScriptCall, len(e.Calls))
	for i, c := range e.Calls {
		c.Arguments = rules.Redact(c.Arguments)
		calls[i] = c
	}
	e.Calls = calls
	return e
}

// CallCount returns the number of collected calls of a script.
func (d ApprovalDetails) CallCount() (n int) {
	for _, e := range d.Effects {
		n += len(e.Calls)
	}
	return n
}
