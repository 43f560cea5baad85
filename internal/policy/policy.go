// Package policy decides which caller may use which tool, prompt or resource. A person writes the rules.
//
// The package guarantees three properties. The first matching rule decides, whichever of a card's names the call uses.
// A call that a rule cannot evaluate is denied. Examples are arguments that are not valid JSON or repeat a name, and
// expressions that fail, read a missing value or cost too much. A card is hidden from a caller's list only if no call
// of that card by the caller could be allowed.
//
// The package does no input or output and reads no clock. It caches the names of tools and prompts, and stores no other
// data of a call after the decision.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
)

// The kinds of items that a caller can use. If a request names no item, such as a request for the list of tasks or a
// request of an extension, its kind is "".
const (
	KindTool     = "tool"
	KindPrompt   = "prompt"
	KindResource = "resource"
	KindTemplate = "template"
	KindTask     = "task"
)

// methodComplete is the MCP method that completes an argument of a prompt or a template.
const methodComplete = "completion/complete"

// DeniedMessage is the text that Drawbridge returns to a caller whose call a rule denies. The caller learns no other
// reason.
const DeniedMessage = "Tool call denied by policy"

// Limits on the number and the total size of the rules of one policy.
const (
	MaxRules      = 256
	MaxRulesBytes = 256 << 10
)

// A RuleError is a mistake in a rule.
type RuleError struct {
	// Position is the file position of the rule; empty if the mistake concerns all rules together.
	Position string
	Err      error
}

// Error returns the position and the mistake.
func (e *RuleError) Error() string {
	if e.Position == "" {
		return e.Err.Error()
	}
	return e.Position + ": " + e.Err.Error()
}

// Unwrap returns the mistake.
func (e *RuleError) Unwrap() error { return e.Err }

// A Policy is a checked set of rules. It is safe for concurrent use.
type Policy struct {
	// defaultDecision is the decision if no rule matches.
	defaultDecision Decision
	rules           []*compiledRule
	home            string
	// exprUsesCaller reports whether an expression of a rule uses the variable caller.
	exprUsesCaller bool
	// exprUsesRun reports whether an expression uses the label of the caller's run.
	exprUsesRun bool
	targets     targetCache
}

// New checks rules and returns their policy. The error is a *RuleError for the first mistake.
func New(rules drawbridge.Rules) (*Policy, error) {
	p, mistakes := compileRules(rules)
	if len(mistakes) > 0 {
		return nil, mistakes[0]
	}
	return p, nil
}

// Mistakes returns all mistakes in rules, in the order of the rules. It returns an empty list if New would succeed for
// the same rules.
func Mistakes(rules drawbridge.Rules) []*RuleError {
	_, mistakes := compileRules(rules)
	return mistakes
}

// compileRules returns the policy of rules and all mistakes in rules. If there are mistakes, the policy is nil or
// incomplete.
func compileRules(rules drawbridge.Rules) (p *Policy, mistakes []*RuleError) {
	if len(rules.Rules) > MaxRules {
		return nil, []*RuleError{{rules.Rules[MaxRules].At, fmt.Errorf("there are %d rules, and %d are the most",
			len(rules.Rules), MaxRules)}}
	}
	if text, err := json.Marshal(rules); err != nil || len(text) > MaxRulesBytes {
		return nil, []*RuleError{{"", fmt.Errorf("the rules have more than %d KiB", MaxRulesBytes>>10)}}
	}
	if rules.Default > drawbridge.Allow {
		mistakes = append(mistakes, &RuleError{"", errors.New("default_effect must be allow, ask or deny")})
	}
	p = &Policy{home: strings.TrimSuffix(rules.Home, "/")}
	p.defaultDecision = Decision{Effect: rules.Default, Why: "no rule matches, and default_effect is " +
		rules.Default.String()}
	var l *exprCompiler
	words := func() (_ *exprCompiler, err error) {
		if l == nil {
			l, err = newExprCompiler()
		}
		return l, err
	}
	for _, r := range rules.Rules {
		ready, errs := compileRule(r, p.home, words)
		for _, err := range errs {
			mistakes = append(mistakes, &RuleError{r.At, err})
		}
		ready.reason = ruleReason(ready.effect, len(p.rules)+1)
		p.rules = append(p.rules, ready)
		p.exprUsesCaller = p.exprUsesCaller || ready.when != nil && ready.when.mentions.caller
		p.exprUsesRun = p.exprUsesRun || ready.when != nil && ready.when.mentions.run
	}
	return p, mistakes
}

// ruleReason returns the text for Decision.Why if the rule with this number decides: "denied by rule 3".
func ruleReason(e drawbridge.Effect, number int) string {
	switch e {
	case drawbridge.Allow:
		return fmt.Sprintf("allowed by rule %d", number)
	case drawbridge.Ask:
		return fmt.Sprintf("approval required by rule %d", number)
	}
	return fmt.Sprintf("denied by rule %d", number)
}

// A Request describes a call, or an item of a list, that a policy decides about.
type Request struct {
	Caller drawbridge.Caller
	// Kind is the kind of the item in Spec, or empty if the request names no item.
	Kind string
	// Spec is the called item. Only Server, Tool, Name, and the annotations in Definition are used.
	Spec drawbridge.Spec
	// Method is the MCP method. Params are the params of the request, as the caller sent them.
	Method string
	Params json.RawMessage
	// Trust is the server's trust level from the configuration: "trusted", "untrusted" or "sandboxed".
	Trust string
	// Label is the label of the caller's run; nil if it is not known.
	Label *flow.Label
	// Dirs are the directories to which the server may join a relative path in the arguments, as absolute paths or file
	// URIs.
	Dirs []string
}

// A Decision is the result of evaluating the rules of a policy for a request.
type Decision struct {
	Effect drawbridge.Effect
	// Hidden reports whether every call of the item by this caller is denied. Such an item must not be listed to the
	// caller.
	Hidden bool
	// Rule is the number of the rule that decided, counted from 1. At is the position of that rule in its file. If the
	// default decided, Rule is 0 and At is "".
	Rule int
	At   string
	// Why explains the decision to the people who write the rules. It contains no argument of the call.
	Why string
}

// A TraceStep is the result of evaluating one rule, for the people who write the rules.
type TraceStep struct {
	Rule   int    `json:"rule"`
	At     string `json:"at,omitempty"`
	Effect string `json:"effect"`
	// Match is "yes", "no", or "error".
	Match string `json:"match"`
	// DecidedBy is the first part of the rule that did not match, such as "paths"; empty if the rule matched. Err is
	// the reason why the rule cannot be evaluated; empty if it can.
	DecidedBy string `json:"by,omitempty"`
	Err       string `json:"error,omitempty"`
}

// Decide returns the decision of the policy for a request.
func (p *Policy) Decide(q Request) Decision { return p.decideTracing(&q, nil) }

// Explain returns the decision for a request, and the result of each rule that was evaluated.
func (p *Policy) Explain(q Request) (Decision, []TraceStep) {
	steps := []TraceStep{}
	d := p.decideTracing(&q, &steps)
	return d, steps
}

func (p *Policy) decideTracing(q *Request, trace *[]TraceStep) Decision {
	s := ruleSubject{ruleTarget: p.targetFor(q.Kind, &q.Spec, q.Trust), caller: newCallerView(&q.Caller),
		method: q.Method, definition: q.Spec.Definition, label: q.Label}
	s.setCall(q.Params, p.home, q.Dirs)
	d := p.firstDecision(&s, trace)
	first := MethodOf(q.Kind)
	if d.Effect != drawbridge.Deny && (first == "" || first == q.Method) {
		return d
	}
	if hidden := p.HiddenDecision(&q.Caller, q.Kind, &q.Spec, q.Trust); hidden.Effect == drawbridge.Deny {
		if d.Effect != drawbridge.Deny {
			d = hidden
		}
		d.Hidden = true
	}
	return d
}

// IsHidden reports whether every call of an item by the caller is denied. If so, the caller must not learn that the
// item exists. A spec that has only a server describes the server itself.
func (p *Policy) IsHidden(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) bool {
	return p.HiddenDecision(who, kind, spec, trust).Effect == drawbridge.Deny
}

// HiddenDecision evaluates the rules for an item without the arguments of a call. Its effect is Deny only if every
// possible call of the item by the caller is denied. The item must then be hidden from the caller.
func (p *Policy) HiddenDecision(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) Decision {
	t := p.targetFor(kind, spec, trust)
	if t.hidden != nil {
		return *t.hidden
	}
	s := ruleSubject{ruleTarget: t, caller: newCallerView(who), method: MethodOf(kind), definition: spec.Definition}
	return p.firstDecision(&s, nil)
}

// UsesRun reports whether a rule looks at the label of the caller's run, see [Request].
func (p *Policy) UsesRun() bool { return p.exprUsesRun }

// CallerClass returns a key for a caller. The rules hide the same items from all callers with the same key.
func (p *Policy) CallerClass(who drawbridge.Caller) string {
	var out []byte
	c := newCallerView(&who)
	for _, r := range p.rules {
		if r.looksAtCaller() {
			out = append(out, '0'+byte(matchIf(r.matchesCaller(&c))))
		}
	}
	if p.exprUsesCaller {
		out = fmt.Appendf(out, " %q %q %q %q %q", c.kind.String(), c.startedBy.String(), c.principal, c.programName(), c.scopes)
	}
	return string(out)
}

// firstDecision returns the decision of the first rule that decides. If s is not one call, a rule that does not deny
// decides "allow" even if it matches only some calls. So an item is hidden only if all its calls are denied.
func (p *Policy) firstDecision(s *ruleSubject, trace *[]TraceStep) Decision {
	if s.cached && trace == nil {
		for _, i := range s.rules {
			r := p.rules[i]
			if r.looksAtCaller() && !r.matchesCaller(&s.caller) {
				continue
			}
			a, _, err := r.matchAfterName(s, matchYes)
			if a == matchNo && err == nil {
				continue
			}
			if d, ok := r.decisionFor(i, a, err); ok {
				return d
			}
		}
		return p.defaultDecision
	}
	for i, r := range p.rules {
		a, by, err := r.match(s)
		if trace != nil {
			*trace = append(*trace, newTraceStep(i, r, a, by, err))
		}
		if d, ok := r.decisionFor(i, a, err); ok {
			return d
		}
	}
	return p.defaultDecision
}

// decisionFor returns the decision of r, the rule with index i, for a match result. It returns false if r does not
// decide, so that the next rule must be evaluated.
func (r *compiledRule) decisionFor(i int, a matchResult, err error) (Decision, bool) {
	d := Decision{Rule: i + 1, At: r.at}
	switch {
	case err != nil:
		d.Why = fmt.Sprintf("rule %d cannot be judged: %s", i+1, err)
		return d, true
	case a == matchYes || a == matchMaybe && r.effect != drawbridge.Deny:
		d.Effect = r.effect
		if a == matchMaybe {
			d.Effect = drawbridge.Allow
		}
		d.Why = r.reason
		return d, true
	}
	return d, false
}

func newTraceStep(i int, r *compiledRule, a matchResult, by string, err error) TraceStep {
	st := TraceStep{Rule: i + 1, At: r.at, Effect: r.effect.String(), Match: "no", DecidedBy: by}
	switch {
	case err != nil:
		st.Match, st.Err = "error", err.Error()
	case a != matchNo:
		st.Match, st.DecidedBy = "yes", ""
	}
	return st
}

// MethodOf returns the MCP method that uses an item of a kind. It returns "" for a task and for an empty kind.
func MethodOf(kind string) string {
	switch kind {
	case KindTool:
		return "tools/call"
	case KindPrompt:
		return "prompts/get"
	case KindResource, KindTemplate:
		return "resources/read"
	}
	return ""
}

// A callerView contains the properties of a caller that rules use. foldedName and program are computed when a rule
// first uses them.
type callerView struct {
	kind         drawbridge.CallerKind
	startedBy    drawbridge.CallerKind // of a script
	principal    string
	scopes       []drawbridge.Scope
	implement    json.RawMessage
	foldedName   string // see foldedPrincipal
	programKnown bool   // whether program is computed
	program      string
}

func newCallerView(c *drawbridge.Caller) callerView {
	return callerView{kind: c.Kind, startedBy: c.StartedBy, principal: c.Principal, scopes: c.Scopes, implement: c.Client}
}

// foldedPrincipal returns the principal, folded like the patterns with which it is compared.
func (c *callerView) foldedPrincipal() string {
	if c.foldedName == "" {
		c.foldedName = foldLabel(c.principal)
	}
	return c.foldedName
}

// hasScopes reports whether the caller has every scope of want.
func (c *callerView) hasScopes(want []drawbridge.Scope) bool {
	return drawbridge.Caller{Kind: c.kind, StartedBy: c.startedBy, Scopes: c.scopes}.HasScopes(want)
}

// programName returns the folded name of the client program, as the client declared it. It is "" if the client declared
// no name.
func (c *callerView) programName() string {
	if !c.programKnown {
		var client struct {
			Name string `json:"name"`
		}
		c.programKnown = true
		if json.Unmarshal(c.implement, &client) == nil {
			c.program = foldLabel(client.Name)
		}
	}
	return c.program
}

// A ruleSubject is what rules are evaluated for: one call, or an item of a list without a call. Do not copy it. It is
// allocated on the stack, as is the Request, because this package stores no pointer to either of them.
type ruleSubject struct {
	*ruleTarget
	caller       callerView
	definition   json.RawMessage
	method       string // as the caller sent it
	methodFolded string // see foldedMethod
	// isCall reports whether the subject is one call; if so, callArgs are its arguments. If replacedArgs is not nil, it
	// is used instead of callArgs, see currentArgs.
	isCall       bool
	callArgs     callArguments
	replacedArgs *callArguments
	// label is the label of the caller's run; nil if it is not known.
	label *flow.Label
	// exprVars are the variables of expressions. They are created when the first expression is evaluated.
	exprVars map[string]any
}

// currentArgs returns the arguments of the call; nil if the subject is not one call.
func (s *ruleSubject) currentArgs() *callArguments {
	switch {
	case s.replacedArgs != nil:
		return s.replacedArgs
	case s.isCall:
		return &s.callArgs
	}
	return nil
}

// foldedMethod returns the method, folded like the patterns with which it is compared.
func (s *ruleSubject) foldedMethod() string {
	if s.methodFolded == "" {
		s.methodFolded = foldLabel(s.method)
	}
	return s.methodFolded
}

// setCall makes the subject one call with the arguments in params. If the name of the item is not known, setCall does
// nothing, and the rules are evaluated without arguments.
func (s *ruleSubject) setCall(params json.RawMessage, home string, dirs []string) {
	if !s.nameKnown {
		return
	}
	s.isCall = true
	s.callArgs.home, s.callArgs.baseDirs, s.callArgs.cardDefinition = home, dirs, s.definition
	if s.kind == KindResource {
		s.callArgs.uri = s.tool
	}
	if s.callArgs.isCompletion = s.method == methodComplete; s.callArgs.isCompletion || s.kind == KindTool ||
		s.kind == KindPrompt {
		s.callArgs.params = params
	}
}

// expressionVariables returns the values of the variables that an expression uses. about are the parts of the request
// that the expression uses.
func (s *ruleSubject) expressionVariables(about mentions) (map[string]any, error) {
	if s.exprVars == nil {
		s.exprVars = map[string]any{}
	}
	if about.others {
		s.exprVars["server"], s.exprVars["trust"] = s.server, s.trust
	}
	if about.run {
		s.exprVars["run"] = map[string]any{"integrity": s.label.Integrity.String(), "confidentiality": s.label.Confidentiality.String()}
	}
	if about.method {
		s.exprVars["method"] = s.foldedMethod()
	}
	if who, _ := s.exprVars["caller"].(map[string]any); about.caller && (who == nil || about.client &&
		who["client"] == nil) {
		scopes := make([]string, 0, len(s.caller.scopes))
		for _, scope := range s.caller.scopes {
			scopes = append(scopes, string(scope))
		}
		who = map[string]any{"kind": s.caller.kind.String(), "principal": s.caller.principal, "scopes": scopes}
		if about.client {
			who["client"] = s.caller.programName()
		}
		s.exprVars["caller"] = who
	}
	if about.card && s.exprVars["annotations"] == nil {
		s.exprVars["tool"], s.exprVars["name"], s.exprVars["kind"] = s.tool, string(s.name), s.kind
		var tool struct {
			Annotations map[string]any `json:"annotations"`
		}
		if json.Unmarshal(s.definition, &tool) != nil || tool.Annotations == nil {
			tool.Annotations = map[string]any{}
		}
		s.exprVars["annotations"] = tool.Annotations
	}
	if about.args && s.exprVars["args"] == nil {
		object, err := s.currentArgs().object()
		if err != nil {
			return nil, err
		}
		s.exprVars["args"] = celValue(object)
	}
	if about.args && len(about.names) > 0 {
		object, err := s.currentArgs().object()
		if err != nil {
			return nil, err
		}
		if own, changed := respellNames(object, about.names); changed { // an expression spells a name in another letter case
			vars := map[string]any{}
			for name, v := range s.exprVars {
				vars[name] = v
			}
			vars["args"] = celValue(own)
			return vars, nil
		}
	}
	return s.exprVars, nil
}

// Rules returns the number of rules in the policy.
func (p *Policy) Rules() int { return len(p.rules) }

// covers reports whether r matches every call that other matches. It may return false although r does.
func (r *compiledRule) covers(other *compiledRule) bool {
	if r.looksAtArguments() || r.when != nil {
		return false
	}
	for _, scope := range r.scopes {
		if !slices.ContainsFunc(other.scopes, func(s drawbridge.Scope) bool { return s == scope }) {
			return false
		}
	}
	everything := r.tools == nil && r.prompts == nil && r.resources == nil
	if !everything {
		if other.tools == nil && other.prompts == nil && other.resources == nil {
			return false
		}
		for _, pair := range [][2]globPatterns{{r.tools, other.tools}, {r.prompts, other.prompts},
			{r.resources, other.resources}} {
			if pair[1] != nil && (pair[0] == nil || !pair[0].covers(pair[1])) {
				return false
			}
		}
		if r.effect == drawbridge.Allow && other.resources != nil && !r.resources.matchesEverything() {
			return false // an allowing rule must match all spellings of a URI
		}
	}
	return r.servers.covers(other.servers) && r.methods.covers(other.methods) && r.trust.covers(other.trust) &&
		r.callers.covers(other.callers) && r.clients.covers(other.clients) && r.kinds.covers(other.kinds)
}
