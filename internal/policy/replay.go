package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// UnknownFields are the fields of a logged call that are missing in its log entry. In the zero value no field is
// missing.
type UnknownFields struct {
	// Name is the called name, Trust is the trust level of its server, and Annotations are the annotations in its
	// definition.
	Name, Trust, Annotations bool
	// Client is the name that the caller's program declared, and Scopes are the scopes that the caller had.
	Client, Scopes bool
	// Arguments are the names of arguments that were logged incompletely. AllArguments means that any argument may be
	// incomplete.
	Arguments    []string
	AllArguments bool
	// Dirs are the directories to which the server could join relative paths.
	Dirs bool
	// Label is the label of the caller's run, and Confidentiality is that part of it. The label is also unknown if the
	// request has none.
	Label, Confidentiality bool
}

// Replay decides a request with unknown fields. If the values of unknown fields could change the decision, Replay
// returns no decision, and lack names the rule and the unknown field. Otherwise lack is empty. Replay assumes that all
// parsers read an incomplete argument in the same way.
func (p *Policy) Replay(q Request, g UnknownFields) (d Decision, lack string) {
	t := p.targetFor(q.Kind, &q.Spec, q.Trust)
	g.Label = g.Label || q.Label == nil
	call := ruleSubject{ruleTarget: t, caller: newCallerView(&q.Caller), method: q.Method,
		definition: q.Spec.Definition, label: q.Label}
	call.setCall(q.Params, p.home, q.Dirs)
	if d, lack = p.decideDespiteUnknown(&call, g); lack != "" {
		return Decision{}, lack
	}
	first := MethodOf(q.Kind)
	if d.Effect != drawbridge.Deny && (first == "" || first == q.Method) {
		return d, ""
	}
	hiding := ruleSubject{ruleTarget: t, caller: newCallerView(&q.Caller), method: first, definition: q.Spec.Definition}
	hidden, unclear := p.decideDespiteUnknown(&hiding, g)
	switch {
	case d.Effect != drawbridge.Deny && unclear != "":
		return Decision{}, unclear
	case unclear == "" && hidden.Effect == drawbridge.Deny:
		if d.Effect != drawbridge.Deny {
			d = hidden
		}
		d.Hidden = true
	}
	return d, ""
}

// decideDespiteUnknown evaluates the rules in order. A rule that uses an unknown field may match or not. If both cases
// lead to the same effect, it returns the decision; otherwise the returned text names the rule and the unknown field.
func (p *Policy) decideDespiteUnknown(s *ruleSubject, g UnknownFields) (Decision, string) {
	type open struct {
		effect drawbridge.Effect
		lack   string
	}
	var all []open
	d := p.defaultDecision
	for i, r := range p.rules {
		known, missing := r.withoutUnknown(s, g)
		a, _, err := known.match(s)
		said, ok := r.decisionFor(i, a, err)
		if missing == "" {
			if ok {
				d = said
				break
			}
			continue
		}
		lack := fmt.Sprintf("rule %d looks at %s, which is not on record", i+1, missing)
		if ok {
			all = append(all, open{said.Effect, lack})
			if r.when != nil && known.when == nil { // the expression may fail
				all = append(all, open{drawbridge.Deny, lack})
			}
		}
	}
	for _, o := range all {
		if o.effect != d.Effect {
			return Decision{}, o.lack
		}
	}
	return d, ""
}

// withoutUnknown returns a copy of the rule without the conditions that use unknown fields. missing names the first
// such field; it is empty if there is none. If the copy does not match, the original rule does not match either.
func (r *compiledRule) withoutUnknown(s *ruleSubject, g UnknownFields) (known *compiledRule, missing string) {
	out := *r
	lacks := func(what string) { missing = firstNonEmpty(missing, what) }
	if g.Name && out.looksAtNamesOf(s.kind) {
		out.tools, out.prompts, out.resources = nil, nil, nil
		lacks("the name")
	}
	if g.Trust && out.trust != nil {
		out.trust = nil
		lacks("the trust of the server")
	}
	if g.Client && out.clients != nil {
		out.clients = nil
		lacks("the name of the client")
	}
	if g.Scopes && out.scopes != nil {
		out.scopes = nil
		lacks("the scopes of the caller")
	}
	if s.currentArgs() != nil && (g.AllArguments || len(g.Arguments) > 0) {
		out.dropUnknownArguments(s, g, lacks)
	}
	if g.Dirs && out.paths != nil && out.dependsOnBaseDirs(s) {
		out.paths, out.foldedPaths = nil, nil
		lacks("where relative paths start")
	}
	if s.currentArgs() != nil && g.Annotations && out.looksAtArguments() {
		// The unknown definition may have declared that the argument is a text.
		if other, err := s.currentArgs().parsedTextReading(); other != nil || err != nil {
			out.paths, out.foldedPaths, out.argsMatch, out.args = nil, nil, nil, nil
			if out.when != nil && out.when.mentions.args {
				out.when = nil
			}
			lacks("what the tool says of its arguments")
		}
	}
	if out.when != nil {
		if what := out.when.mentions.firstUnknown(g, s.currentArgs() != nil); what != "" {
			out.when = nil
			lacks(what)
		}
	}
	return &out, missing
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// looksAtNamesOf reports whether the rule has a condition on the names of items of a kind.
func (r *compiledRule) looksAtNamesOf(kind string) bool {
	switch kind {
	case KindTool:
		return r.tools != nil
	case KindPrompt:
		return r.prompts != nil
	case KindResource, KindTemplate:
		return r.resources != nil
	}
	return false
}

// dropUnknownArguments removes the rule's conditions that use unknown arguments, and passes the removed arguments to
// lacks.
func (r *compiledRule) dropUnknownArguments(s *ruleSubject, g UnknownFields, lacks func(string)) {
	if r.paths != nil && !r.knownPathsDecide(s, g) {
		r.paths, r.foldedPaths = nil, nil
		lacks(g.firstUnknownArgument())
	}
	if r.argsMatch != nil {
		r.argsMatch = nil
		lacks("all of the arguments")
	}
	if r.args == nil {
		return
	}
	var known []argCondition
	for _, c := range r.args {
		first, _, _ := strings.Cut(c.name, ".")
		switch name, ok := g.unknownArgument(c.name, first); {
		case !ok || !g.AllArguments && c.looksAtPresenceOnly():
			known = append(known, c)
		default:
			lacks(name)
		}
	}
	r.args = known
}

// looksAtPresenceOnly reports whether the condition only tests the presence of a top-level argument.
func (c argCondition) looksAtPresenceOnly() bool {
	return !c.looksAtValue() && !strings.Contains(c.name, ".")
}

// knownPathsDecide reports whether the known paths decide the rule's condition on paths, whatever the unknown arguments
// contain. A rule that allows is decided if one known path does not match. Any other rule is decided if one known path
// matches. The URI of a resource is searched for paths too, because it may be a file URI.
func (r *compiledRule) knownPathsDecide(s *ruleSubject, g UnknownFields) bool {
	object, err := s.currentArgs().object()
	if err != nil || g.AllArguments {
		return err != nil
	}
	known := slices.DeleteFunc(slices.Clone(object),
		func(m jsonMember) bool { return slices.Contains(g.Arguments, m.name) })
	part := &callArguments{read: true, value: known, uri: s.currentArgs().uri, home: s.currentArgs().home,
		baseDirs: s.currentArgs().baseDirs}
	files, err := part.namedPaths()
	if err != nil || len(files) == 0 {
		return err != nil
	}
	a, _ := r.matchPaths(&ruleSubject{replacedArgs: part})
	return (a == matchYes) == (r.effect != drawbridge.Allow)
}

// dependsOnBaseDirs reports whether the result of the rule's condition on paths may depend on the base directories.
// That is the case if there is a relative path and the absolute paths do not decide the condition.
func (r *compiledRule) dependsOnBaseDirs(s *ruleSubject) bool {
	for args := s.currentArgs(); args != nil; args, _ = args.parsedTextReading() {
		a, err := r.matchPaths(&ruleSubject{replacedArgs: args})
		if err != nil {
			return false // every evaluation reports this error
		}
		if args.hasRelative && (a == matchYes) == (r.effect == drawbridge.Allow) {
			return true
		}
	}
	return false
}

// firstUnknownArgument returns a description of the first unknown argument.
func (g UnknownFields) firstUnknownArgument() string {
	if g.AllArguments || len(g.Arguments) == 0 {
		return "the arguments"
	}
	return "the argument " + g.Arguments[0]
}

// unknownArgument reports whether one of the named arguments is unknown, and returns its description.
func (g UnknownFields) unknownArgument(names ...string) (string, bool) {
	if g.AllArguments {
		return "the arguments", true
	}
	for _, own := range g.Arguments {
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(own, name) }) {
			return "the argument " + own, true
		}
	}
	return "", false
}

// firstUnknown returns a description of the first unknown field that an expression uses, or "" if there is none. called
// reports whether the subject is one call and so has arguments.
func (m mentions) firstUnknown(g UnknownFields, called bool) string {
	if m.args && !called {
		return "" // expressions use arguments only for a call
	}
	for _, part := range m.parts {
		of, member, inside := strings.Cut(part, ".")
		switch {
		case of == "trust" && g.Trust:
			return "the trust of the server"
		case of == "run" && g.Label:
			return "the label of the run"
		case of == "run" && g.Confidentiality && (!inside || member == "confidentiality"):
			return "the confidentiality of the run"
		case of == "annotations" && g.Annotations:
			return "the annotations"
		case (of == "tool" || of == "name") && g.Name:
			return "the name"
		case of == "caller" && g.Scopes && (!inside || member == "scopes"):
			return "the scopes of the caller"
		case of == "caller" && g.Client && (!inside || member == "client"):
			return "the name of the client"
		case of != "args":
		case !inside && (g.AllArguments || len(g.Arguments) > 0):
			return "all of the arguments"
		case inside:
			if what, ok := g.unknownArgument(member); ok {
				return what
			}
		}
	}
	if m.args && g.AllArguments { // the expression tests the presence of an argument
		return "the arguments"
	}
	return ""
}
