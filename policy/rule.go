package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// A rule is one ready to be asked. Nil patterns are no demand.
type rule struct {
	at     string
	effect drawbridge.Effect
	// says is what the rule says where it matches.
	says string

	tools, prompts, resources, servers, methods, trust patterns
	callers, clients, kinds                            patterns
	scopes                                             []drawbridge.Scope

	paths, foldedPaths []pathGlob
	argsMatch          *regexp.Regexp
	args               []condition
	when               *expression
}

// newRule checks a rule. words gives the language of expressions.
func newRule(r drawbridge.Rule, home string, words func() (*language, error)) (*rule, error) {
	if err := checkWords(r); err != nil {
		return nil, err
	}
	out := &rule{
		at: r.At, effect: r.Effect, scopes: r.Scopes,
		tools: folded(r.Tools), prompts: folded(r.Prompts), resources: folded(r.Resources), servers: folded(r.Servers),
		methods: folded(r.Methods), trust: folded(r.Trust),
		callers: folded(r.Callers), clients: folded(r.Clients), kinds: folded(r.Kinds),
	}
	for _, text := range r.Paths {
		out.paths = append(out.paths, newPathGlob(text, home))
		out.foldedPaths = append(out.foldedPaths, newPathGlob(foldName(text), foldName(home)))
	}
	var err error
	if r.ArgsMatch != "" {
		if out.argsMatch, err = newRegexp(r.ArgsMatch); err != nil {
			return nil, fmt.Errorf("args_match: %w", err)
		}
	}
	for _, c := range r.Args {
		ready, err := newCondition(c)
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, ready)
	}
	if r.When != "" {
		l, err := words()
		if err != nil {
			return nil, err
		}
		if out.when, err = l.compile(r.When); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkWords refuses lists that name nothing, which would look like a demand and be none, and words that there are not.
func checkWords(r drawbridge.Rule) error {
	for _, l := range []struct {
		name  string
		list  []string
		among []string
	}{
		{"tools", r.Tools, nil}, {"prompts", r.Prompts, nil}, {"resources", r.Resources, nil}, {"servers", r.Servers, nil},
		{"methods", r.Methods, nil}, {"callers", r.Callers, nil}, {"clients", r.Clients, nil}, {"paths", r.Paths, nil},
		{"trust", r.Trust, []string{"trusted", "untrusted", "sandboxed"}},
		{"kinds", r.Kinds, []string{"author", "agent", "external", "import", "sandbox"}},
	} {
		if l.list != nil && len(l.list) == 0 {
			return fmt.Errorf("%s is empty: a rule for everything does not name it", l.name)
		}
		for _, word := range l.list {
			if strings.TrimSpace(word) == "" {
				return fmt.Errorf("%s has an empty text", l.name)
			}
			if l.among != nil && !slices.Contains(l.among, fold(word)) {
				return fmt.Errorf("%s may have %s", l.name, strings.Join(l.among, ", "))
			}
		}
	}
	if r.Scopes != nil && len(r.Scopes) == 0 {
		return errors.New("scopes is empty: a rule for everything does not name it")
	}
	if r.Effect > drawbridge.Allow {
		return errors.New("effect must be allow, ask or deny")
	}
	return nil
}

// An answer says whether a rule matches. Maybe is for what is known only when a call comes.
type answer uint8

const (
	no answer = iota
	maybe
	yes
)

func (a answer) and(b answer) answer { return min(a, b) }

func answerOf(b bool) answer {
	if b {
		return yes
	}
	return no
}

// dynamic says whether it depends on the arguments whether the rule matches.
func (r *rule) dynamic() bool {
	return r.paths != nil || r.argsMatch != nil || r.args != nil || r.when != nil && r.when.about.args
}

// asked says whether the rule matches, and what of it decided that: of several the first. Where s is of no call, that is
// maybe where the rule looks at what only calls have. The error is for what cannot be judged.
func (r *rule) asked(s *subject) (a answer, by string, err error) {
	if by = r.onServer(s); by != "" {
		return no, by, nil
	}
	if !r.of(&s.caller) {
		return no, "caller", nil
	}
	if a = r.named(s); a == no {
		return no, "name", nil
	}
	return r.further(s, a)
}

// further is asked of a rule that is about the server, the caller and the name: of that a is what the name said.
func (r *rule) further(s *subject, a answer) (_ answer, by string, err error) {
	by = "name"
	if r.methods != nil {
		if m := r.methodsOf(s); m < a {
			a, by = m, "methods"
		}
	}
	if a == no || !r.dynamic() && r.when == nil {
		return a, by, nil
	}
	return r.judged(s, a, by)
}

// onServer says what of the rule keeps it from being about the server; empty where it is.
func (r *rule) onServer(s *subject) (by string) {
	switch {
	case r.servers != nil && !r.servers.match(s.server):
		return "servers"
	case r.trust != nil && !r.trust.match(s.trust):
		return "trust"
	}
	return ""
}

// judgedAs goes on where the rule looks at more than names, with the arguments as they are: it asks what the rule has.
func (r *rule) judgedAs(s *subject, a answer, by string) (answer, string, error) {
	for part := range 4 {
		var got answer
		var name string
		var err error
		switch {
		case part == 0 && r.paths != nil:
			name = "paths"
			got, err = r.inPaths(s)
		case part == 1 && r.argsMatch != nil:
			name = "args_match"
			got, err = r.inText(s)
		case part == 2 && r.args != nil:
			name = "args"
			got, err = r.conditions(s)
		case part == 3 && r.when != nil:
			name = "when"
			got, err = r.expression(s)
		default:
			continue
		}
		if got < a || err != nil {
			a, by = got, name
		}
		if a == no || err != nil {
			return no, by, err
		}
	}
	return a, by, nil
}

// named says whether the rule is about what s is about.
func (r *rule) named(s *subject) answer {
	if r.tools == nil && r.prompts == nil && r.resources == nil {
		return yes
	}
	switch s.kind {
	case Tool:
		return answerOf(r.tools.matchAny(s.names))
	case Prompt:
		return answerOf(r.prompts.matchAny(s.names))
	case Resource, Template:
		if r.effect != drawbridge.Allow {
			return answerOf(r.resources.matchAny(s.names) || r.resources.matchAny(s.also))
		}
		for _, name := range s.names { // written plainly or not, it must be one that the rule allows
			if !r.resources.match(name) {
				return no
			}
		}
		return yes
	case Task:
		return unnamed(r.tools)
	}
	return max(unnamed(r.tools), unnamed(r.prompts), unnamed(r.resources)).and(maybe)
}

// unnamed says whether patterns match a name that is not known.
func unnamed(ps patterns) answer {
	switch {
	case ps == nil:
		return no
	case ps.everything():
		return yes
	}
	return maybe
}

func (r *rule) methodsOf(s *subject) answer {
	if s.how() == "" {
		return unnamed(r.methods)
	}
	return answerOf(r.methods.match(s.how()))
}

// of says whether the rule is about the caller.
func (r *rule) of(c *caller) bool {
	return (r.callers == nil || r.callers.match(c.name())) && (r.clients == nil || r.clients.match(c.client())) &&
		(r.kinds == nil || r.kinds.match(c.kind.String())) && (r.scopes == nil || c.holds(r.scopes))
}

// aboutCallers says whether it matters to the rule who calls, but for its expression.
func (r *rule) aboutCallers() bool {
	return r.callers != nil || r.clients != nil || r.kinds != nil || r.scopes != nil
}

// inPaths says whether the rule's paths are those of the call. One that leads out of a directory nobody knows may be any:
// no rule allows it, and every other rule is about it. A relative one is also each that it leads to from where it may start; a pattern
// that is relative is about what is written.
func (r *rule) inPaths(s *subject) (answer, error) {
	if s.args() == nil {
		return maybe, nil
	}
	files, err := s.args().files()
	if err != nil || len(files) == 0 {
		return no, err
	}
	named := false
	for i := range files {
		file := &files[i]
		out := file.names[0] == ".."
		if r.effect == drawbridge.Allow {
			if file.guess {
				continue
			}
			if named = true; out || !oneOf(r.paths, file.names) && !oneRelative(r.paths, file.from) {
				return no, nil
			}
		} else if out || oneOf(r.foldedPaths, file.folded) {
			return yes, nil
		}
	}
	return answerOf(named), nil
}

func oneOf(globs []pathGlob, names []string) bool {
	return slices.ContainsFunc(globs, func(g pathGlob) bool { return g.match(names) })
}

// oneRelative says whether one of the patterns that are relative is about a path as it is written.
func oneRelative(globs []pathGlob, names []string) bool {
	return names != nil && slices.ContainsFunc(globs, func(g pathGlob) bool { return g[0] != "" && g.match(names) })
}

func (r *rule) inText(s *subject) (answer, error) {
	if s.args() == nil {
		return maybe, nil
	}
	text, err := s.args().canonical()
	return answerOf(err == nil && r.argsMatch.MatchString(text)), err
}

func (r *rule) conditions(s *subject) (answer, error) {
	if s.args() == nil {
		return maybe, nil
	}
	object, err := s.args().object()
	if err != nil {
		return no, err
	}
	for _, c := range r.args {
		if ok, err := c.holds(object, r.effect != drawbridge.Allow); !ok || err != nil {
			return no, err
		}
	}
	return yes, nil
}

func (r *rule) expression(s *subject) (answer, error) {
	about := &r.when.about
	if about.args && s.args() == nil || about.card && !s.known || about.method && s.how() == "" {
		return maybe, nil
	}
	if about.args {
		if _, err := s.args().object(); err != nil {
			return no, err
		}
	}
	if a := r.when.quickly(s); a != maybe {
		return a, nil
	}
	vars, err := s.variables(*about)
	if err != nil {
		return no, err
	}
	ok, err := r.when.eval(vars)
	return answerOf(ok), err
}

// plain makes of what the reader of arguments gives what CEL reckons with.
func plain(v any) any {
	return maps(v, func(v any) any {
		number, ok := v.(json.Number)
		if !ok {
			return v
		}
		if n, err := number.Int64(); err == nil {
			return n
		}
		f, _ := number.Float64()
		return f
	})
}
