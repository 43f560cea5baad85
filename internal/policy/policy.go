// Package policy decides which caller may use which tool, prompt or resource, by rules that a person wrote.
//
// It guarantees three things. The first matching rule decides, whatever name a card was called by. A call that a rule
// cannot judge is denied: arguments that are not valid JSON or repeat a name, and expressions that fail, read a missing
// value or cost too much. A listing hides a card only if no call by that caller could ever be allowed.
//
// The package does no input or output, reads no clock and keeps nothing of a call between two decisions.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// The kinds of items that can be called. A request without kind has no name, such as a list of tasks, or a request of
// an extension.
const (
	KindTool     = "tool"
	KindPrompt   = "prompt"
	KindResource = "resource"
	KindTemplate = "template"
	KindTask     = "task"
)

// methodComplete is the MCP method that completes an argument of a prompt or a template.
const methodComplete = "completion/complete"

// DeniedMessage is the only text that a caller gets for a call that a rule denies.
const DeniedMessage = "Tool call denied by policy"

// Bounds of rules.
const (
	MaxRules      = 256
	MaxRulesBytes = 256 << 10
)

// A RuleError is a mistake in a rule.
type RuleError struct {
	// Position is where the rule is written; empty if the mistake concerns all rules together.
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
	// defaultDecision applies where no rule matches.
	defaultDecision Decision
	rules           []*compiledRule
	home            string
	// exprUsesCaller reports that an expression looks at the caller.
	exprUsesCaller bool
	targets        targetCache
}

// New checks rules and returns their policy. The error is a *RuleError for the first mistake.
func New(rules drawbridge.Rules) (*Policy, error) {
	p, mistakes := compileRules(rules)
	if len(mistakes) > 0 {
		return nil, mistakes[0]
	}
	return p, nil
}

// Mistakes returns all mistakes in rules, in their order; none if New returns a policy.
func Mistakes(rules drawbridge.Rules) []*RuleError {
	_, mistakes := compileRules(rules)
	return mistakes
}

// compileRules returns the policy of rules, and all mistakes in them. With a mistake the policy is not complete.
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
	}
	return p, mistakes
}

// ruleReason returns the reason for a decision of a rule, by its number.
func ruleReason(e drawbridge.Effect, number int) string {
	switch e {
	case drawbridge.Allow:
		return fmt.Sprintf("allowed by rule %d", number)
	case drawbridge.Ask:
		return fmt.Sprintf("approval required by rule %d", number)
	}
	return fmt.Sprintf("denied by rule %d", number)
}

// A Request is a question to a policy.
type Request struct {
	Caller drawbridge.Caller
	// Kind is the kind of Spec, or empty.
	Kind string
	// Spec is the called item. Its Server, Tool, Name, and the annotations in Definition matter.
	Spec drawbridge.Spec
	// Method is the MCP method. Params are its params as the caller sent them.
	Method string
	Params json.RawMessage
	// Trust is the trust level in the server's row: "trusted", "untrusted" or "sandboxed".
	Trust string
	// Dirs are the directories in which a relative path in the arguments may start, as absolute paths or file URIs.
	Dirs []string
}

// A Decision is the answer of a policy.
type Decision struct {
	Effect drawbridge.Effect
	// Hidden reports that no call of the item by this caller can ever be allowed, so that it must not be listed.
	Hidden bool
	// Rule is the number of the rule that decided, counted from 1, and At where it is written; 0 and empty for the
	// default.
	Rule int
	At   string
	// Why explains the decision to the people who write the rules. It repeats no argument.
	Why string
}

// A TraceStep is the result of one rule, for the people who write the rules.
type TraceStep struct {
	Rule   int    `json:"rule"`
	At     string `json:"at,omitempty"`
	Effect string `json:"effect"`
	// Match is "yes", "no", or "error".
	Match string `json:"match"`
	// DecidedBy is the part of the rule that decided, empty for a match. Err names what could not be judged.
	DecidedBy string `json:"by,omitempty"`
	Err       string `json:"error,omitempty"`
}

// Decide answers a request.
func (p *Policy) Decide(q Request) Decision { return p.decideTracing(&q, nil) }

// Explain answers a request, and returns the result of each rule that was evaluated.
func (p *Policy) Explain(q Request) (Decision, []TraceStep) {
	steps := []TraceStep{}
	d := p.decideTracing(&q, &steps)
	return d, steps
}

func (p *Policy) decideTracing(q *Request, trace *[]TraceStep) Decision {
	s := ruleSubject{ruleTarget: p.targetFor(q.Kind, &q.Spec, q.Trust), caller: newCallerView(&q.Caller),
		method: q.Method, definition: q.Spec.Definition}
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

// IsHidden reports whether the caller can never be allowed to use an item. The caller must then not learn that it
// exists. A spec with a server only stands for the server.
func (p *Policy) IsHidden(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) bool {
	return p.HiddenDecision(who, kind, spec, trust).Effect == drawbridge.Deny
}

// HiddenDecision is like IsHidden, and returns the rule that decides.
func (p *Policy) HiddenDecision(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) Decision {
	t := p.targetFor(kind, spec, trust)
	if t.hidden != nil {
		return *t.hidden
	}
	s := ruleSubject{ruleTarget: t, caller: newCallerView(who), method: MethodOf(kind), definition: spec.Definition}
	return p.firstDecision(&s, nil)
}

// CallerClass returns a key for a caller: the rules hide the same items from callers with the same key.
func (p *Policy) CallerClass(who drawbridge.Caller) string {
	var out []byte
	c := newCallerView(&who)
	for _, r := range p.rules {
		if r.looksAtCaller() {
			out = append(out, '0'+byte(matchIf(r.matchesCaller(&c))))
		}
	}
	if p.exprUsesCaller {
		out = fmt.Appendf(out, " %q %q %q %q", c.kind.String(), c.principal, c.programName(), c.scopes)
	}
	return string(out)
}

// firstDecision evaluates the rules in order. If s is not a call, an allowing rule that may match some call decides.
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

// decisionFor returns the decision of a rule from its result; false if the next rule decides.
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

// MethodOf returns the MCP method that uses an item of a kind; empty for a task, and for no kind.
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

// A callerView is a caller as rules see it. Rarely used members are computed on first use.
type callerView struct {
	kind         drawbridge.CallerKind
	principal    string
	scopes       []drawbridge.Scope
	implement    json.RawMessage
	foldedName   string // see foldedPrincipal
	programKnown bool   // program is computed
	program      string
}

func newCallerView(c *drawbridge.Caller) callerView {
	return callerView{kind: c.Kind, principal: c.Principal, scopes: c.Scopes, implement: c.Client}
}

// foldedPrincipal returns the principal in the form that patterns are compared with.
func (c *callerView) foldedPrincipal() string {
	if c.foldedName == "" {
		c.foldedName = foldLabel(c.principal)
	}
	return c.foldedName
}

// hasScopes reports whether the caller has every scope of want.
func (c *callerView) hasScopes(want []drawbridge.Scope) bool {
	return drawbridge.Caller{Kind: c.kind, Scopes: c.scopes}.HasScopes(want)
}

// programName returns the name that the caller's program declared.
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

// A ruleSubject is the subject that rules are evaluated for: a call, or any call of the same item. It is not copied. It
// stays on the stack of the caller, as does the request, since nothing here keeps a pointer to either.
type ruleSubject struct {
	*ruleTarget
	caller       callerView
	definition   json.RawMessage
	method       string // as requested
	methodFolded string // see foldedMethod
	// isCall reports that it is one call, and callArgs are its arguments. replacedArgs replaces them unless nil, see
	// currentArgs.
	isCall       bool
	callArgs     callArguments
	replacedArgs *callArguments
	// exprVars are the variables of expressions, made for the first one.
	exprVars map[string]any
}

// currentArgs returns the arguments of the call; nil if the subject is any call.
func (s *ruleSubject) currentArgs() *callArguments {
	switch {
	case s.replacedArgs != nil:
		return s.replacedArgs
	case s.isCall:
		return &s.callArgs
	}
	return nil
}

// foldedMethod returns the method in the form that patterns are compared with.
func (s *ruleSubject) foldedMethod() string {
	if s.methodFolded == "" {
		s.methodFolded = foldLabel(s.method)
	}
	return s.methodFolded
}

// setCall makes the subject one call, with its arguments.
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

// expressionVariables returns the variables that an expression uses.
func (s *ruleSubject) expressionVariables(about mentions) (map[string]any, error) {
	if s.exprVars == nil {
		s.exprVars = map[string]any{}
	}
	if about.others {
		s.exprVars["server"], s.exprVars["trust"] = s.server, s.trust
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
		if own, changed := respellNames(object, about.names); changed { // other expressions spell them differently
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

// Rules returns the number of rules.
func (p *Policy) Rules() int { return len(p.rules) }

// covers reports whether r matches everything that the other rule matches. It may return false although it is so.
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
			return false // an allowing rule wants all ways to write a URI
		}
	}
	return r.servers.covers(other.servers) && r.methods.covers(other.methods) && r.trust.covers(other.trust) &&
		r.callers.covers(other.callers) && r.clients.covers(other.clients) && r.kinds.covers(other.kinds)
}
