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

// A compiledRule is a rule that is ready for evaluation. A nil field is not a condition of the rule.
type compiledRule struct {
	at     string
	effect drawbridge.Effect
	// reason is the text for Decision.Why if this rule decides.
	reason string

	tools, prompts, resources, servers, methods, trust globPatterns
	callers, clients, kinds                            globPatterns
	scopes                                             []drawbridge.Scope

	paths, foldedPaths []pathGlob
	argsMatch          *regexp.Regexp
	args               []argCondition
	when               *celExpression
}

// compileRule checks and compiles a rule, and returns all mistakes in the rule. If there are mistakes, the compiled
// rule is incomplete. words returns the compiler for expressions; it is called only if the rule has an expression.
func compileRule(r drawbridge.Rule, home string, words func() (*exprCompiler, error)) (out *compiledRule,
	errs []error) {
	errs = checkRuleLists(r)
	out = &compiledRule{
		at: r.At, effect: r.Effect, scopes: r.Scopes,
		tools: foldedPatterns(r.Tools), prompts: foldedPatterns(r.Prompts), resources: foldedPatterns(r.Resources),
		servers: foldedPatterns(r.Servers),
		methods: foldedPatterns(r.Methods), trust: foldedPatterns(r.Trust),
		callers: foldedPatterns(r.Callers), clients: foldedPatterns(r.Clients), kinds: foldedPatterns(r.Kinds),
	}
	for _, text := range r.Paths {
		out.paths = append(out.paths, newPathGlob(text, home))
		out.foldedPaths = append(out.foldedPaths, newPathGlob(foldArgumentName(text), foldArgumentName(home)))
	}
	var err error
	if r.ArgsMatch != "" {
		if out.argsMatch, err = newRegexp(r.ArgsMatch); err != nil {
			errs = append(errs, fmt.Errorf("args_match: %w", err))
		}
	}
	for _, c := range r.Args {
		ready, err := newArgCondition(c)
		if err != nil {
			errs = append(errs, err)
		}
		out.args = append(out.args, ready)
	}
	if r.When == "" {
		return out, errs
	}
	l, err := words()
	if err == nil {
		out.when, err = l.compile(r.When)
	}
	if err != nil {
		errs = append(errs, err)
	}
	return out, errs
}

// checkRuleLists returns an error for each empty list and for each list with an unknown word. An empty list is an error
// because it looks like a condition but has no effect.
func checkRuleLists(r drawbridge.Rule) (errs []error) {
	for _, l := range []struct {
		name  string
		list  []string
		among []string
	}{
		{"tools", r.Tools, nil}, {"prompts", r.Prompts, nil}, {"resources", r.Resources, nil},
		{"servers", r.Servers, nil},
		{"methods", r.Methods, nil}, {"callers", r.Callers, nil}, {"clients", r.Clients, nil}, {"paths", r.Paths, nil},
		{"trust", r.Trust, []string{"trusted", "untrusted", "sandboxed"}},
		{"kinds", r.Kinds, []string{"author", "agent", "external", "import", "sandbox"}},
	} {
		if l.list != nil && len(l.list) == 0 {
			errs = append(errs, fmt.Errorf("%s is empty: remove it for a rule that matches everything", l.name))
		}
		for _, word := range l.list {
			if strings.TrimSpace(word) == "" {
				errs = append(errs, fmt.Errorf("%s has an empty text", l.name))
				break
			}
			if l.among != nil && !slices.Contains(l.among, foldLabel(word)) {
				errs = append(errs, fmt.Errorf("%s may have %s", l.name, strings.Join(l.among, ", ")))
				break
			}
		}
	}
	if r.Scopes != nil && len(r.Scopes) == 0 {
		errs = append(errs, errors.New("scopes is empty: remove it for a rule that matches everything"))
	}
	if r.Effect > drawbridge.Allow {
		errs = append(errs, errors.New("effect must be allow, ask or deny"))
	}
	return errs
}

// A matchResult is the result of matching a rule. matchMaybe means that the result is unknown, because the rule matches
// some calls of the item and not others.
type matchResult uint8

const (
	matchNo matchResult = iota
	matchMaybe
	matchYes
)

func (a matchResult) and(b matchResult) matchResult { return min(a, b) }

func matchIf(b bool) matchResult {
	if b {
		return matchYes
	}
	return matchNo
}

// looksAtArguments reports whether a condition of the rule uses the arguments of the call.
func (r *compiledRule) looksAtArguments() bool {
	return r.paths != nil || r.argsMatch != nil || r.args != nil || r.when != nil && r.when.mentions.args
}

// match reports whether the rule matches s. If the result is not matchYes, by is the part of the rule that caused this.
// If s is not one call and the rule uses parts of a call, the result is matchMaybe. match returns an error if the rule
// cannot be evaluated for this call.
func (r *compiledRule) match(s *ruleSubject) (a matchResult, by string, err error) {
	if by = r.serverMismatch(s); by != "" {
		return matchNo, by, nil
	}
	if !r.matchesCaller(&s.caller) {
		return matchNo, "caller", nil
	}
	if a = r.matchName(s); a == matchNo {
		return matchNo, "name", nil
	}
	return r.matchAfterName(s, a)
}

// matchAfterName evaluates the other conditions of a rule whose server, caller and name conditions matched. a is the
// result for the name.
func (r *compiledRule) matchAfterName(s *ruleSubject, a matchResult) (_ matchResult, by string, err error) {
	by = "name"
	if r.methods != nil {
		if m := r.matchMethod(s); m < a {
			a, by = m, "methods"
		}
	}
	if a == matchNo || !r.looksAtArguments() && r.when == nil {
		return a, by, nil
	}
	if s.caller.kind == drawbridge.Sandbox && r.when != nil && r.when.mentions.caller {
		return r.matchScript(s, a, by)
	}
	return r.matchBothReadings(s, a, by)
}

// matchScript evaluates the conditions of a rule with an expression about the caller, for a call by a script: as a call
// of the caller that started the script, and, unless the rule allows, also as a call of the kind "sandbox". See
// matchesKind.
func (r *compiledRule) matchScript(s *ruleSubject, a matchResult, by string) (matchResult, string, error) {
	as := func(kind drawbridge.CallerKind) (matchResult, string, error) {
		kindBefore, vars := s.caller.kind, s.exprVars
		s.caller.kind, s.exprVars = kind, nil
		defer func() { s.caller.kind, s.exprVars = kindBefore, vars }()
		return r.matchBothReadings(s, a, by)
	}
	got, what, err := as(s.caller.startedBy)
	if err != nil || got == matchYes || r.effect == drawbridge.Allow {
		return got, what, err
	}
	if other, whatOther, errOther := as(drawbridge.Sandbox); errOther != nil || other > got {
		return other, whatOther, errOther
	}
	return got, what, nil
}

// serverMismatch returns the part of the rule that does not match the server: "servers" or "trust". It returns "" if
// both match.
func (r *compiledRule) serverMismatch(s *ruleSubject) (by string) {
	switch {
	case r.servers != nil && !r.servers.match(s.server):
		return "servers"
	case r.trust != nil && !r.trust.match(s.trust):
		return "trust"
	}
	return ""
}

// matchArguments evaluates the conditions paths, args_match, args and when, with the current arguments of s. a and by
// are the result and the deciding part of the conditions that were evaluated before.
func (r *compiledRule) matchArguments(s *ruleSubject, a matchResult, by string) (matchResult, string, error) {
	for part := range 4 {
		var got matchResult
		var name string
		var err error
		switch {
		case part == 0 && r.paths != nil:
			name = "paths"
			got, err = r.matchPaths(s)
		case part == 1 && r.argsMatch != nil:
			name = "args_match"
			got, err = r.matchArgumentText(s)
		case part == 2 && r.args != nil:
			name = "args"
			got, err = r.matchConditions(s)
		case part == 3 && r.when != nil:
			name = "when"
			got, err = r.matchExpression(s)
		default:
			continue
		}
		if got < a || err != nil {
			a, by = got, name
		}
		if a == matchNo || err != nil {
			return matchNo, by, err
		}
	}
	return a, by, nil
}

// matchName reports whether the rule matches the name of the item.
func (r *compiledRule) matchName(s *ruleSubject) matchResult {
	if r.tools == nil && r.prompts == nil && r.resources == nil {
		return matchYes
	}
	switch s.kind {
	case KindTool:
		return matchIf(r.tools.matchAny(s.names))
	case KindPrompt:
		return matchIf(r.prompts.matchAny(s.names))
	case KindResource, KindTemplate:
		if r.effect != drawbridge.Allow {
			return matchIf(r.resources.matchAny(s.names) || r.resources.matchAny(s.also))
		}
		for _, name := range s.names { // each spelling of the name must be allowed
			if !r.resources.match(name) {
				return matchNo
			}
		}
		return matchYes
	case KindTask:
		return matchUnknownName(r.tools)
	}
	return max(matchUnknownName(r.tools), matchUnknownName(r.prompts), matchUnknownName(r.resources)).and(matchMaybe)
}

// matchUnknownName returns the result of matching the patterns with a name that is not known. Nil patterns do not
// match.
func matchUnknownName(ps globPatterns) matchResult {
	switch {
	case ps == nil:
		return matchNo
	case ps.matchesEverything():
		return matchYes
	}
	return matchMaybe
}

func (r *compiledRule) matchMethod(s *ruleSubject) matchResult {
	if s.foldedMethod() == "" {
		return matchUnknownName(r.methods)
	}
	return matchIf(r.methods.match(s.foldedMethod()))
}

// matchesCaller reports whether the rule matches the caller.
func (r *compiledRule) matchesCaller(c *callerView) bool {
	return (r.callers == nil || r.callers.match(c.foldedPrincipal())) &&
		(r.clients == nil || r.clients.match(c.programName())) &&
		(r.kinds == nil || r.matchesKind(c)) && (r.scopes == nil || c.hasScopes(r.scopes))
}

// matchesKind reports whether the rule's kinds match the caller. A script has two kinds: "sandbox", and the kind of the
// caller that started it. A rule that allows must match the kind of the caller that started it, so that a script gets
// no right that this caller does not have.
func (r *compiledRule) matchesKind(c *callerView) bool {
	if c.kind != drawbridge.Sandbox {
		return r.kinds.match(c.kind.String())
	}
	return r.kinds.match(c.startedBy.String()) ||
		r.effect != drawbridge.Allow && r.kinds.match(c.kind.String())
}

// looksAtCaller reports whether the rule has conditions on the caller, apart from its expression.
func (r *compiledRule) looksAtCaller() bool {
	return r.callers != nil || r.clients != nil || r.kinds != nil || r.scopes != nil
}

// matchPaths reports whether the rule's patterns match the paths of the call. A rule that allows must match every path,
// and any other rule at least one path. A relative path that begins with ".." may lead to any file. So a rule that
// allows never matches such a path, and any other rule always does. A relative path is also joined to each directory of
// the request. A relative pattern is compared with the path as written.
func (r *compiledRule) matchPaths(s *ruleSubject) (matchResult, error) {
	if s.currentArgs() == nil {
		return matchMaybe, nil
	}
	files, err := s.currentArgs().namedPaths()
	if err != nil || len(files) == 0 {
		return matchNo, err
	}
	named := false
	for i := range files {
		file := &files[i]
		out := file.segments[0] == ".."
		if r.effect == drawbridge.Allow {
			if file.guess {
				continue
			}
			if named = true; out || !matchesAnyGlob(r.paths, file.segments) && !matchesAnyRelativeGlob(r.paths,
				file.relativeFrom) {
				return matchNo, nil
			}
		} else if out || matchesAnyGlob(r.foldedPaths, file.foldedSegments) {
			return matchYes, nil
		}
	}
	return matchIf(named), nil
}

func matchesAnyGlob(globs []pathGlob, names []string) bool {
	return slices.ContainsFunc(globs, func(g pathGlob) bool { return g.match(names) })
}

// matchesAnyRelativeGlob reports whether one of the relative patterns matches a path as written.
func matchesAnyRelativeGlob(globs []pathGlob, names []string) bool {
	return names != nil && slices.ContainsFunc(globs, func(g pathGlob) bool { return g[0] != "" && g.match(names) })
}

func (r *compiledRule) matchArgumentText(s *ruleSubject) (matchResult, error) {
	if s.currentArgs() == nil {
		return matchMaybe, nil
	}
	text, err := s.currentArgs().canonicalJSON()
	return matchIf(err == nil && r.argsMatch.MatchString(text)), err
}

func (r *compiledRule) matchConditions(s *ruleSubject) (matchResult, error) {
	if s.currentArgs() == nil {
		return matchMaybe, nil
	}
	object, err := s.currentArgs().object()
	if err != nil {
		return matchNo, err
	}
	for _, c := range r.args {
		if ok, err := c.isMet(object, r.effect != drawbridge.Allow); !ok || err != nil {
			return matchNo, err
		}
	}
	return matchYes, nil
}

func (r *compiledRule) matchExpression(s *ruleSubject) (matchResult, error) {
	about := &r.when.mentions
	if about.args && s.currentArgs() == nil || about.card && !s.nameKnown || about.method && s.foldedMethod() == "" ||
		about.run && s.label == nil {
		return matchMaybe, nil
	}
	if about.args {
		if _, err := s.currentArgs().object(); err != nil {
			return matchNo, err
		}
	}
	if a := r.when.evalFast(s); a != matchMaybe {
		return a, nil
	}
	vars, err := s.expressionVariables(*about)
	if err != nil {
		return matchNo, err
	}
	ok, err := r.when.eval(vars)
	return matchIf(ok), err
}

// celValue converts a value that a jsonReader returned to a value that CEL can use.
func celValue(v any) any {
	return toMaps(v, func(v any) any {
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
