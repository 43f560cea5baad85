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
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// The kinds of what can be called. What has no kind is not known by name: a list of tasks, a request of an extension.
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

// The bounds of rules.
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
	if len(rules.Rules) > MaxRules {
		return nil, &RuleError{rules.Rules[MaxRules].At, fmt.Errorf("there are %d rules, and %d are the most",
			len(rules.Rules), MaxRules)}
	}
	if text, err := json.Marshal(rules); err != nil || len(text) > MaxRulesBytes {
		return nil, &RuleError{"", fmt.Errorf("the rules have more than %d KiB", MaxRulesBytes>>10)}
	}
	if rules.Default > drawbridge.Allow {
		return nil, &RuleError{"", fmt.Errorf("default_effect must be allow, ask or deny")}
	}
	p := &Policy{home: strings.TrimSuffix(rules.Home, "/")}
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
		ready, err := compileRule(r, p.home, words)
		if err != nil {
			return nil, &RuleError{r.At, err}
		}
		ready.reason = fmt.Sprintf("rule %d says %s", len(p.rules)+1, ready.effect)
		p.rules = append(p.rules, ready)
		p.exprUsesCaller = p.exprUsesCaller || ready.when != nil && ready.when.mentions.caller
	}
	return p, nil
}

// A Request is what a policy decides on.
type Request struct {
	Caller drawbridge.Caller
	// Kind is what Spec is: one of the kinds, or empty.
	Kind string
	// Spec is what is called, of which Server, Tool, Name and the annotations in Definition matter.
	Spec drawbridge.Spec
	// Method is the MCP method, Params its params as the caller sent them.
	Method string
	Params json.RawMessage
	// Trust is the word of the server's row: "trusted", "untrusted" or "sandboxed".
	Trust string
	// Dirs are the directories that a relative path in the arguments may start at, as absolute paths or file URIs.
	Dirs []string
}

// A Decision is the answer.
type Decision struct {
	Effect drawbridge.Effect
	// Hidden reports that no call of this by this caller can ever be let in: to them it is not there.
	Hidden bool
	// Rule is the rule that decided, counted from 1, and At where it is written; 0 and empty where none did.
	Rule int
	At   string
	// Why says what decided, for those who keep the rules. It repeats no argument.
	Why string
}

// A TraceStep is what one rule said, for those who keep the rules.
type TraceStep struct {
	Rule   int    `json:"rule"`
	At     string `json:"at,omitempty"`
	Effect string `json:"effect"`
	// Match is "yes", "no", or "error".
	Match string `json:"match"`
	// DecidedBy is the part of the rule that decided so, empty for a match; Err what could not be judged.
	DecidedBy string `json:"by,omitempty"`
	Err       string `json:"error,omitempty"`
}

// Decide answers a question.
func (p *Policy) Decide(q Request) Decision { return p.decideTracing(&q, nil) }

// Explain answers a question and says what each rule said that was asked.
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

// IsHidden reports whether the caller can never be let in to something: that it is there, or for a Spec with a server
// only that the server is, is not theirs to know.
func (p *Policy) IsHidden(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) bool {
	return p.HiddenDecision(who, kind, spec, trust).Effect == drawbridge.Deny
}

// HiddenDecision is Hides with the rule that decides.
func (p *Policy) HiddenDecision(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) Decision {
	t := p.targetFor(kind, spec, trust)
	if t.hidden != nil {
		return *t.hidden
	}
	s := ruleSubject{ruleTarget: t, caller: newCallerView(who), method: MethodOf(kind), definition: spec.Definition}
	return p.firstDecision(&s, nil)
}

// CallerClass says in a word what the caller is to the rules: from two callers of one class the same is hidden.
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

// firstDecision asks the rules in their order. Where s is of no call, an allowing rule that may match one lets the
// call be made.
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

// decisionFor is what a rule decides by what it answered; false where the next one is asked.
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

// MethodOf is the MCP method by which a thing of the kind is used; empty for a task, and for what has no kind.
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

// A callerView is one as rules see them: what few rules look at is worked out for the first that does.
type callerView struct {
	kind         drawbridge.CallerKind
	principal    string
	scopes       []drawbridge.Scope
	implement    json.RawMessage
	foldedName   string // see name
	programKnown bool   // program is known
	program      string
}

func newCallerView(c *drawbridge.Caller) callerView {
	return callerView{kind: c.Kind, principal: c.Principal, scopes: c.Scopes, implement: c.Client}
}

// foldedPrincipal is the principal, as patterns are compared with it.
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

// programName is what the program calls itself.
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

// A ruleSubject is what rules are asked about: a call, or any call of the same thing. It is not copied. It stays on
// the stack of who asks, and so does the question: nothing here leads to either.
type ruleSubject struct {
	*ruleTarget
	caller       callerView
	definition   json.RawMessage
	method       string // as it was asked for
	methodFolded string // see how
	// isCall reports that it is one call, own are the arguments of that; other stands in their place where it is not
	// nil, see args.
	isCall       bool
	callArgs     callArguments
	replacedArgs *callArguments
	// exprVars are what expressions reckon with, made when the first one does.
	exprVars map[string]any
}

// currentArgs are those of the call; nil where it is any call.
func (s *ruleSubject) currentArgs() *callArguments {
	switch {
	case s.replacedArgs != nil:
		return s.replacedArgs
	case s.isCall:
		return &s.callArgs
	}
	return nil
}

// foldedMethod is the method, as patterns are compared with it.
func (s *ruleSubject) foldedMethod() string {
	if s.methodFolded == "" {
		s.methodFolded = foldLabel(s.method)
	}
	return s.methodFolded
}

// setCall has the subject be one call, with its arguments.
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

// expressionVariables has what an expression looks at.
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
		if own, changed := respellNames(object, about.names); changed { // other expressions spell them otherwise
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

// Rules says how many rules there are.
func (p *Policy) Rules() int { return len(p.rules) }

// covers reports whether r matches whatever the other matches. It may say no although it is so.
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
