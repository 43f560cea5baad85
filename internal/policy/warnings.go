package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// knownMethods are the MCP methods to which rules apply. Rules also apply to methods of unknown extensions.
var knownMethods = []string{
	"tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/directory/read", methodComplete,
	"skills/list", "skills/get",
	"tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list",
}

// callerMembers are the members of the variable caller in expressions.
var callerMembers = []string{"kind", "principal", "client", "scopes"}

// Warnings returns the probable mistakes in the rules. Each warning is one line that begins with the position of the
// rule.
func (p *Policy) Warnings() (all []string) {
	for i, r := range p.rules {
		say := func(text string) { all = append(all, rulePosition(r, i)+text) }
		if j := slices.IndexFunc(p.rules[:i], func(earlier *compiledRule) bool { return earlier.covers(r) }); j >= 0 {
			say("it can never match: rule " + strconv.Itoa(j+1) + " always comes before it")
		}
		if r.clients != nil && r.effect == drawbridge.Allow && r.callers == nil && r.scopes == nil {
			say("it trusts the name that a client declares: any client may declare it")
		}
		for _, m := range r.methods {
			if !strings.ContainsAny(string(m), "*?") && !slices.Contains(knownMethods, string(m)) {
				say(fmt.Sprintf(
					"methods has %q, which rules do not apply to: they apply to %s, and to methods of extensions",
					m, strings.Join(knownMethods, ", ")))
			}
		}
		if text := r.relativePattern(); text != "" {
			say(fmt.Sprintf(
				"paths has %q, which is relative: a relative value is judged only under argument names such as path, file and target; "+
					"a value that begins with / or ~ is judged under any", text))
		}
		for _, c := range r.args {
			if why := c.neverMetReason(); why != "" {
				say("it can never match: args." + c.name + " " + why)
			}
		}
		if r.when != nil {
			for _, name := range r.when.mentions.unknownCallerMembers() {
				say(fmt.Sprintf("when uses caller.%s, which does not exist: a caller has %s", name,
					strings.Join(callerMembers, ", ")))
			}
		}
	}
	return all
}

func rulePosition(r *compiledRule, i int) string {
	if r.at == "" {
		return "rule " + strconv.Itoa(i+1) + ": "
	}
	return r.at + ": rule " + strconv.Itoa(i+1) + ": "
}

// relativePattern returns the rule's first path pattern that may match a relative path, except "**", which matches all
// paths. It returns "" if there is no such pattern.
func (r *compiledRule) relativePattern() string {
	for _, g := range r.paths {
		if text := strings.Join(g, "/"); g[0] != "" && text != "**" {
			return text
		}
	}
	return ""
}

// neverMetReason returns the reason why no argument can meet the condition, or "" if an argument can meet it.
func (c argCondition) neverMetReason() string {
	switch {
	case c.above != nil && c.below != nil && *c.above >= *c.below:
		return fmt.Sprintf("cannot be above %v and below %v", *c.above, *c.below)
	case c.present != nil && !*c.present && c.looksAtValue():
		return "cannot be absent and have a value"
	}
	return ""
}

// unknownCallerMembers returns the names x for which an expression uses caller.x although the variable caller has no
// such member.
func (m mentions) unknownCallerMembers() (all []string) {
	for _, part := range m.parts {
		name, is := strings.CutPrefix(part, "caller.")
		if is && !slices.Contains(callerMembers, name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
