package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// UnknownFields are what nobody knows any more of a call that was made: the record of it says less than the call did.
// The zero value has none.
type UnknownFields struct {
	// Name is what was called, Trust how far its server is trusted, Annotations what its definition said of it.
	Name, Trust, Annotations bool
	// Client is what the caller's program called itself, Scopes what the caller held.
	Client, Scopes bool
	// Arguments are the arguments of which not all is known, AllArguments that it may be any.
	Arguments    []string
	AllArguments bool
	// Dirs are the directories that relative paths may start at.
	Dirs bool
}

// Replay answers a question of which not everything is known. Where the answer could be another one if more were known
// it returns none, and lack says which rule looks at what: it is empty for an answer that counts. An argument that is
// not known whole is taken for one that all readers read alike.
func (p *Policy) Replay(q Request, g UnknownFields) (d Decision, lack string) {
	t := p.targetFor(q.Kind, &q.Spec, q.Trust)
	call := ruleSubject{ruleTarget: t, caller: newCallerView(&q.Caller), method: q.Method,
		definition: q.Spec.Definition}
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

// decideDespiteUnknown asks the rules in their order. One that looks at what is not known may match or not: whatever
// it would say then, the answer must be the same.
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
			if r.when != nil && known.when == nil { // it may fail
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

// withoutUnknown is the rule without what it looks at that is not known, of which missing names the first: what it
// reports false to, the whole rule reports false to.
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
		// the definition may have said that it is a text
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

// looksAtNamesOf reports whether the rule looks at the names of things of a kind.
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

// dropUnknownArguments takes out what looks at arguments that are not known.
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

// looksAtPresenceOnly reports whether the condition only asks if an argument is there.
func (c argCondition) looksAtPresenceOnly() bool {
	return !c.looksAtValue() && !strings.Contains(c.name, ".")
}

// knownPathsDecide reports whether the paths that are known decide what the rule's paths answer, whatever others there
// are: one that it allows not, or one that it is about. Any text may be the URI of a file.
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

// dependsOnBaseDirs reports whether it may turn on where relative paths start what the rule's paths answer: there is
// one, and what is known does not decide already.
func (r *compiledRule) dependsOnBaseDirs(s *ruleSubject) bool {
	for args := s.currentArgs(); args != nil; args, _ = args.parsedTextReading() {
		a, err := r.matchPaths(&ruleSubject{replacedArgs: args})
		if err != nil {
			return false // whoever asks is told so
		}
		if args.hasRelative && (a == matchYes) == (r.effect == drawbridge.Allow) {
			return true
		}
	}
	return false
}

// firstUnknownArgument names the first of the arguments that are not known.
func (g UnknownFields) firstUnknownArgument() string {
	if g.AllArguments || len(g.Arguments) == 0 {
		return "the arguments"
	}
	return "the argument " + g.Arguments[0]
}

// unknownArgument reports whether one of these is an argument that is not known, and which.
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

// firstUnknown names what an expression looks at that is not known; empty for nothing. called says that it is about a
// call, which has arguments.
func (m mentions) firstUnknown(g UnknownFields, called bool) string {
	if m.args && !called {
		return "" // it is not looked at before there is a call
	}
	for _, part := range m.parts {
		of, member, inside := strings.Cut(part, ".")
		switch {
		case of == "trust" && g.Trust:
			return "the trust of the server"
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
	if m.args && g.AllArguments { // it asks whether one is there
		return "the arguments"
	}
	return ""
}
