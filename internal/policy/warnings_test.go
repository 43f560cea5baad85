package policy

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, Tools: []string{"*_file", "shell"}},
		drawbridge.Rule{Effect: allow, Tools: []string{"read_file"}},
		drawbridge.Rule{Effect: allow, Tools: []string{"read_?ile", "write"}},
		drawbridge.Rule{Effect: allow, Clients: []string{"cursor"}},
		drawbridge.Rule{Effect: deny, Servers: []string{"*"}},
		drawbridge.Rule{Effect: allow, When: "true"})
	if diff := cmp.Diff([]string{
		"file:2: rule 2: it can never match: rule 1 always comes before it",
		"file:4: rule 4: it trusts the name that a client declares: any client may declare it",
		"file:6: rule 6: it can never match: rule 5 always comes before it",
	}, p.Warnings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWarningsOfRulesThatNeverMatch has what no call can meet, each beside what is like it and can.
func TestWarningsOfRulesThatNeverMatch(t *testing.T) {
	one, nine, absent, present := 1.0, 9.0, false, true
	args := func(c drawbridge.Condition) drawbridge.Rule { return drawbridge.Rule{Args: []drawbridge.Condition{c}} }
	const asked = ": they apply to tools/call, prompts/get, resources/read, resources/subscribe, resources/directory/read, completion/complete, " +
		"skills/list, skills/get, tasks/get, tasks/update, tasks/cancel, tasks/result, tasks/list, and to methods of extensions"
	for _, tt := range []struct {
		rule drawbridge.Rule
		want string
	}{
		{drawbridge.Rule{Methods: []string{"Tools/Call", "tool/*", "task?/get"}}, ""},
		{drawbridge.Rule{Methods: []string{"tools/call", "tool/call"}},
			`methods has "tool/call", which rules do not apply to` + asked},
		{drawbridge.Rule{Methods: []string{"tools/list"}},
			`methods has "tools/list", which rules do not apply to` + asked},
		{args(drawbridge.Condition{Name: "n", Above: &one, Below: &nine}), ""},
		{args(drawbridge.Condition{Name: "n", Above: &nine, Below: &one}),
			"it can never match: args.n cannot be above 9 and below 1"},
		{args(drawbridge.Condition{Name: "n", Above: &one, Below: &one}),
			"it can never match: args.n cannot be above 1 and below 1"},
		{args(drawbridge.Condition{Name: "n", Present: &present, Matches: "a"}), ""},
		{args(drawbridge.Condition{Name: "n", Present: &absent}), ""},
		{args(drawbridge.Condition{Name: "n", Present: &absent, Matches: "a"}),
			"it can never match: args.n cannot be absent and have a value"},
		{drawbridge.Rule{Paths: []string{"/etc/**", "~/x", "$HOME/y", "C:\\x", "file:///x", "**"}}, ""},
		{drawbridge.Rule{Paths: []string{"/etc/**", "./src/**"}},
			`paths has "src/**", which is relative: a relative value is judged only under argument names such as ` +
				"path, file and target; a value that begins with / or ~ is judged under any"},
		{drawbridge.Rule{Paths: []string{"**/.env"}},
			`paths has "**/.env", which is relative: a relative value is judged only under argument names such as ` +
				"path, file and target; a value that begins with / or ~ is judged under any"},
		{drawbridge.Rule{When: `caller.kind == caller.principal || "x" in caller.scopes || caller["client"] == "x" || annotations.foo`}, ""},
		{drawbridge.Rule{When: `caller.kind == "author"`}, ""},
		{drawbridge.Rule{When: `caller.foo == "x" || has(caller.foo)`},
			"when uses caller.foo, which does not exist: a caller has kind, principal, client, scopes"},
		{drawbridge.Rule{When: `caller["Kind"] == "x"`},
			"when uses caller.Kind, which does not exist: a caller has kind, principal, client, scopes"},
		{drawbridge.Rule{When: `run.integrity == "untrusted" && "private" != run["confidentiality"]`}, ""},
		{drawbridge.Rule{When: `run.integrity in ["project", "trusted"]`}, ""},
		{drawbridge.Rule{When: `run.integrit == "untrusted"`},
			"when uses run.integrit, which does not exist: a run has integrity, confidentiality"},
		{drawbridge.Rule{When: `run.integrity == "untrustd"`},
			`when compares run.integrity with "untrustd", which it never is: it is one of untrusted, project, trusted`},
		{drawbridge.Rule{When: `"secret" == run.confidentiality`},
			`when compares run.confidentiality with "secret", which it never is: it is one of public, internal, private`},
		{drawbridge.Rule{When: `caller.kind in ["agent", "bot"]`},
			`when compares caller.kind with "bot", which it never is: it is one of author, agent, external, import, sandbox`},
	} {
		var want []string
		if tt.want != "" {
			want = []string{"file:1: rule 1: " + tt.want}
		}
		if diff := cmp.Diff(want, compiled(t, allow, tt.rule).Warnings()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.rule, diff)
		}
	}
}
