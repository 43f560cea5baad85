package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
)

// knownMethods are the MCP methods to which rules apply. Rules also apply to methods of unknown extensions.
var knownMethods = []string{
	"tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/directory/read", methodComplete,
	"skills/list", "skills/get",
	"tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list",
}

// variableMembers are the members of the variables caller and run in expressions.
var variableMembers = []struct {
	variable string
	members  []string
}{
	{"caller", []string{"kind", "principal", "client", "scopes"}},
	{"run", []string{"integrity", "confidentiality"}},
}

// knownValues are the values of the members that have few.
var knownValues = map[string][]string{
	"caller.kind":         {"author", "agent", "external", "import", "sandbox"},
	"run.integrity":       {flow.Untrusted.String(), flow.Project.String(), flow.Trusted.String()},
	"run.confidentiality": {flow.Public.String(), flow.Internal.String(), flow.Private.String()},
}

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
			for _, text := range r.when.mentions.unknownMembers() {
				say(text)
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

// unknownMembers returns a warning for each member x of caller.x or run.x that does not exist, and for each text that
// such a member never is.
func (m mentions) unknownMembers() (all []string) {
	for _, v := range variableMembers {
		for _, part := range m.parts {
			name, is := strings.CutPrefix(part, v.variable+".")
			text := fmt.Sprintf("when uses %s, which does not exist: a %s has %s", part, v.variable,
				strings.Join(v.members, ", "))
			if is && !slices.Contains(v.members, name) && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	for _, c := range m.compared {
		if values := knownValues[c.part]; values != nil && !slices.Contains(values, c.text) {
			all = append(all, fmt.Sprintf("when compares %s with %.60q, which it never is: it is one of %s",
				c.part, c.text, strings.Join(values, ", ")))
		}
	}
	return all
}
