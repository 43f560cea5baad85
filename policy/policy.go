// Package policy decides which caller may do what with which card, by rules that a person wrote.
//
// It promises that the first rule that matches decides, whatever name a card was called by; that what a rule cannot judge
// is denied: arguments that two readers could read in two ways, an expression that fails, looks at what is not there, or
// costs too much; and that of a card it can be told beforehand whether a caller can ever be let in, so that lists and
// calls say the same. It does no input or output, keeps nothing of a call between two decisions, and asks no clock.
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
	Tool     = "tool"
	Prompt   = "prompt"
	Resource = "resource"
	Template = "template"
	Task     = "task"
)

// complete is the MCP method that completes an argument of a prompt or a template.
const complete = "completion/complete"

// Denied is all that a caller is told of a call that a rule denies.
const Denied = "Tool call denied by policy"

// The bounds of rules.
const (
	MaxRules = 256
	MaxBytes = 256 << 10
)

// A RuleError is a mistake in a rule.
type RuleError struct {
	// At is where the rule is written, as the rule says; empty where the mistake is in all of them together.
	At  string
	Err error
}

// Error says where and what.
func (e *RuleError) Error() string {
	if e.At == "" {
		return e.Err.Error()
	}
	return e.At + ": " + e.Err.Error()
}

// Unwrap gives the mistake.
func (e *RuleError) Unwrap() error { return e.Err }

// A Policy is rules, checked. It may be asked from several goroutines.
type Policy struct {
	// otherwise is what is decided where no rule does.
	otherwise Decision
	rules     []*rule
	home      string
	// whenCaller says that an expression looks at the caller.
	whenCaller bool
	things     things
}

// New checks rules. The error is a *RuleError: of the first mistake.
func New(rules drawbridge.Rules) (*Policy, error) {
	if len(rules.Rules) > MaxRules {
		return nil, &RuleError{rules.Rules[MaxRules].At, fmt.Errorf("there are %d rules, and %d are the most", len(rules.Rules), MaxRules)}
	}
	if text, err := json.Marshal(rules); err != nil || len(text) > MaxBytes {
		return nil, &RuleError{"", fmt.Errorf("the rules have more than %d KiB", MaxBytes>>10)}
	}
	if rules.Default > drawbridge.Allow {
		return nil, &RuleError{"", fmt.Errorf("default_effect must be allow, ask or deny")}
	}
	p := &Policy{home: strings.TrimSuffix(rules.Home, "/")}
	p.otherwise = Decision{Effect: rules.Default, Why: "no rule matches, and default_effect is " + rules.Default.String()}
	var l *language
	words := func() (_ *language, err error) {
		if l == nil {
			l, err = newLanguage()
		}
		return l, err
	}
	for _, r := range rules.Rules {
		ready, err := newRule(r, p.home, words)
		if err != nil {
			return nil, &RuleError{r.At, err}
		}
		ready.says = fmt.Sprintf("rule %d says %s", len(p.rules)+1, ready.effect)
		p.rules = append(p.rules, ready)
		p.whenCaller = p.whenCaller || ready.when != nil && ready.when.about.caller
	}
	return p, nil
}

// A Question is what a policy decides on.
type Question struct {
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
	// Hidden says that no call of this by this caller can ever be let in: to them it is not there.
	Hidden bool
	// Rule is the rule that decided, counted from 1, and At where it is written; 0 and empty where none did.
	Rule int
	At   string
	// Why says what decided, for those who keep the rules. It repeats no argument.
	Why string
}

// A Step is what one rule said, for those who keep the rules.
type Step struct {
	Rule   int    `json:"rule"`
	At     string `json:"at,omitempty"`
	Effect string `json:"effect"`
	// Match is "yes", "no", or "error".
	Match string `json:"match"`
	// By is the part of the rule that decided so, empty for a match; Err what could not be judged.
	By  string `json:"by,omitempty"`
	Err string `json:"error,omitempty"`
}

// Decide answers a question.
func (p *Policy) Decide(q Question) Decision { return p.decide(&q, nil) }

// Explain answers a question and says what each rule said that was asked.
func (p *Policy) Explain(q Question) (Decision, []Step) {
	steps := []Step{}
	d := p.decide(&q, &steps)
	return d, steps
}

func (p *Policy) decide(q *Question, trace *[]Step) Decision {
	s := subject{thing: p.thing(q.Kind, &q.Spec, q.Trust), caller: callerOf(&q.Caller), method: q.Method, definition: q.Spec.Definition}
	s.call(q.Params, p.home, q.Dirs)
	d := p.ask(&s, trace)
	first := MethodOf(q.Kind)
	if d.Effect != drawbridge.Deny && (first == "" || first == q.Method) {
		return d
	}
	if hidden := p.Hidden(&q.Caller, q.Kind, &q.Spec, q.Trust); hidden.Effect == drawbridge.Deny {
		if d.Effect != drawbridge.Deny {
			d = hidden
		}
		d.Hidden = true
	}
	return d
}

// Hides says whether the caller can never be let in to something: that it is there, or for a Spec with a server only that
// the server is, is not theirs to know.
func (p *Policy) Hides(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) bool {
	return p.Hidden(who, kind, spec, trust).Effect == drawbridge.Deny
}

// Hidden is Hides with the rule that decides.
func (p *Policy) Hidden(who *drawbridge.Caller, kind string, spec *drawbridge.Spec, trust string) Decision {
	t := p.thing(kind, spec, trust)
	if t.hidden != nil {
		return *t.hidden
	}
	s := subject{thing: t, caller: callerOf(who), method: MethodOf(kind), definition: spec.Definition}
	return p.ask(&s, nil)
}

// Class says in a word what the caller is to the rules: from two callers of one class the same is hidden.
func (p *Policy) Class(who drawbridge.Caller) string {
	var out []byte
	c := callerOf(&who)
	for _, r := range p.rules {
		if r.aboutCallers() {
			out = append(out, '0'+byte(answerOf(r.of(&c))))
		}
	}
	if p.whenCaller {
		out = fmt.Appendf(out, " %q %q %q %q", c.kind.String(), c.principal, c.client(), c.scopes)
	}
	return string(out)
}

// ask asks the rules in their order. Where s is of no call, an allowing rule that may match one lets the call be made.
func (p *Policy) ask(s *subject, trace *[]Step) Decision {
	if s.met && trace == nil {
		for _, i := range s.rules {
			r := p.rules[i]
			if r.aboutCallers() && !r.of(&s.caller) {
				continue
			}
			a, _, err := r.further(s, yes)
			if a == no && err == nil {
				continue
			}
			if d, ok := r.decision(i, a, err); ok {
				return d
			}
		}
		return p.otherwise
	}
	for i, r := range p.rules {
		a, by, err := r.asked(s)
		if trace != nil {
			*trace = append(*trace, stepOf(i, r, a, by, err))
		}
		if d, ok := r.decision(i, a, err); ok {
			return d
		}
	}
	return p.otherwise
}

// decision is what a rule decides by what it answered; false where the next one is asked.
func (r *rule) decision(i int, a answer, err error) (Decision, bool) {
	d := Decision{Rule: i + 1, At: r.at}
	switch {
	case err != nil:
		d.Why = fmt.Sprintf("rule %d cannot be judged: %s", i+1, err)
		return d, true
	case a == yes || a == maybe && r.effect != drawbridge.Deny:
		d.Effect = r.effect
		if a == maybe {
			d.Effect = drawbridge.Allow
		}
		d.Why = r.says
		return d, true
	}
	return d, false
}

func stepOf(i int, r *rule, a answer, by string, err error) Step {
	st := Step{Rule: i + 1, At: r.at, Effect: r.effect.String(), Match: "no", By: by}
	switch {
	case err != nil:
		st.Match, st.Err = "error", err.Error()
	case a != no:
		st.Match, st.By = "yes", ""
	}
	return st
}

// MethodOf is the MCP method by which a thing of the kind is used; empty for a task, and for what has no kind.
func MethodOf(kind string) string {
	switch kind {
	case Tool:
		return "tools/call"
	case Prompt:
		return "prompts/get"
	case Resource, Template:
		return "resources/read"
	}
	return ""
}

// A caller is one as rules see them: what few rules look at is worked out for the first that does.
type caller struct {
	kind      drawbridge.CallerKind
	principal string
	scopes    []drawbridge.Scope
	implement json.RawMessage
	folded    string // see name
	named     bool   // program is known
	program   string
}

func callerOf(c *drawbridge.Caller) caller {
	return caller{kind: c.Kind, principal: c.Principal, scopes: c.Scopes, implement: c.Client}
}

// name is the principal, as patterns are compared with it.
func (c *caller) name() string {
	if c.folded == "" {
		c.folded = fold(c.principal)
	}
	return c.folded
}

// holds says whether the caller has every scope of want.
func (c *caller) holds(want []drawbridge.Scope) bool {
	return drawbridge.Caller{Kind: c.kind, Scopes: c.scopes}.Holds(want)
}

// client is what the program calls itself.
func (c *caller) client() string {
	if !c.named {
		var client struct {
			Name string `json:"name"`
		}
		c.named = true
		if json.Unmarshal(c.implement, &client) == nil {
			c.program = fold(client.Name)
		}
	}
	return c.program
}

// A subject is what rules are asked about: a call, or any call of the same thing. It is not copied. It stays on the stack of who asks,
// and so does the question: nothing here leads to either.
type subject struct {
	*thing
	caller     caller
	definition json.RawMessage
	method     string // as it was asked for
	folded     string // see how
	// called says that it is one call, own are the arguments of that; other stands in their place where it is not nil, see args.
	called bool
	own    arguments
	other  *arguments
	// vars are what expressions reckon with, made when the first one does.
	vars map[string]any
}

// args are those of the call; nil where it is any call.
func (s *subject) args() *arguments {
	switch {
	case s.other != nil:
		return s.other
	case s.called:
		return &s.own
	}
	return nil
}

// how is the method, as patterns are compared with it.
func (s *subject) how() string {
	if s.folded == "" {
		s.folded = fold(s.method)
	}
	return s.folded
}

// call has the subject be one call, with its arguments.
func (s *subject) call(params json.RawMessage, home string, dirs []string) {
	if !s.known {
		return
	}
	s.called = true
	s.own.home, s.own.dirs, s.own.definition = home, dirs, s.definition
	if s.kind == Resource {
		s.own.uri = s.tool
	}
	if s.own.completes = s.method == complete; s.own.completes || s.kind == Tool || s.kind == Prompt {
		s.own.params = params
	}
}

// variables has what an expression looks at.
func (s *subject) variables(about mentions) (map[string]any, error) {
	if s.vars == nil {
		s.vars = map[string]any{}
	}
	if about.others {
		s.vars["server"], s.vars["trust"] = s.server, s.trust
	}
	if about.method {
		s.vars["method"] = s.how()
	}
	if who, _ := s.vars["caller"].(map[string]any); about.caller && (who == nil || about.client && who["client"] == nil) {
		scopes := make([]string, 0, len(s.caller.scopes))
		for _, scope := range s.caller.scopes {
			scopes = append(scopes, string(scope))
		}
		who = map[string]any{"kind": s.caller.kind.String(), "principal": s.caller.principal, "scopes": scopes}
		if about.client {
			who["client"] = s.caller.client()
		}
		s.vars["caller"] = who
	}
	if about.card && s.vars["annotations"] == nil {
		s.vars["tool"], s.vars["name"], s.vars["kind"] = s.tool, string(s.name), s.kind
		var tool struct {
			Annotations map[string]any `json:"annotations"`
		}
		if json.Unmarshal(s.definition, &tool) != nil || tool.Annotations == nil {
			tool.Annotations = map[string]any{}
		}
		s.vars["annotations"] = tool.Annotations
	}
	if about.args && s.vars["args"] == nil {
		object, err := s.args().object()
		if err != nil {
			return nil, err
		}
		s.vars["args"] = plain(object)
	}
	if about.args && len(about.names) > 0 {
		object, err := s.args().object()
		if err != nil {
			return nil, err
		}
		if own, changed := spelled(object, about.names); changed { // other expressions spell them otherwise
			vars := map[string]any{}
			for name, v := range s.vars {
				vars[name] = v
			}
			vars["args"] = plain(own)
			return vars, nil
		}
	}
	return s.vars, nil
}

// Rules says how many rules there are.
func (p *Policy) Rules() int { return len(p.rules) }

// covers says whether r matches whatever the other matches. It may say no although it is so.
func (r *rule) covers(other *rule) bool {
	if r.dynamic() || r.when != nil {
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
		for _, pair := range [][2]patterns{{r.tools, other.tools}, {r.prompts, other.prompts}, {r.resources, other.resources}} {
			if pair[1] != nil && (pair[0] == nil || !pair[0].covers(pair[1])) {
				return false
			}
		}
		if r.effect == drawbridge.Allow && other.resources != nil && !r.resources.everything() {
			return false // an allowing rule wants all ways to write a URI
		}
	}
	return r.servers.covers(other.servers) && r.methods.covers(other.methods) && r.trust.covers(other.trust) &&
		r.callers.covers(other.callers) && r.clients.covers(other.clients) && r.kinds.covers(other.kinds)
}
