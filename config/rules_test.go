package config

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/google/go-cmp/cmp"
)

// read reads a drawbridge.toml, of which only the table "tools" counts.
func read(text string) (*drawbridge.Rules, error) {
	root, err := configfile.ParseTOML([]byte(text))
	if err != nil {
		return nil, err
	}
	r := rulesReader{File: "f", Home: "/home/ada"}
	for _, m := range root.FindAll("tools", "policy") {
		if all := splitMistakes(r.readPolicyTable(m.Value)); len(all) > 0 {
			return nil, all[0]
		}
	}
	for _, m := range root.FindAll("tools", "authorization") {
		if all := splitMistakes(r.readAuthorizationTable(m.Value)); len(all) > 0 {
			return nil, all[0]
		}
	}
	return r.activeRules(), nil
}

func TestRead(t *testing.T) {
	above, present := 10.0, false
	got, err := read(`
[tools.authorization]
enabled = true
[[tools.authorization.rules]]
action = "deny"
tools = ["shell"]

[tools.policy]
default_effect = "ask"
[[tools.policy.rules]]
effect = "allow"
tool = "read_*"
prompts = ["p"]
resources = ["r://*"]
servers = "fs"
methods = ["tools/call"]
trust_level = ["trusted"]
callers = ["ada"]
clients = ["cursor"]
kinds = ["author"]
scopes = ["mcp:fs"]
paths = ["~/src/**"]
args_match = "x"
when = "args.n > 1"
args.branch = ["main", 1, true]
args.n = { above = 10, present = false, not = "x", matches = "y", is = "z" }
`)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(values ...string) (out []json.RawMessage) {
		for _, v := range values {
			out = append(out, json.RawMessage(v))
		}
		return out
	}
	want := &drawbridge.Rules{Default: drawbridge.Ask, Home: "/home/ada", Rules: []drawbridge.Rule{
		{
			At: "f:10", Effect: drawbridge.Allow, Tools: []string{"read_*"}, Prompts: []string{"p"},
			Resources: []string{"r://*"},
			Servers:   []string{"fs"}, Methods: []string{"tools/call"}, Trust: []string{"trusted"},
			Callers: []string{"ada"},
			Clients: []string{"cursor"}, Kinds: []string{"author"}, Scopes: []drawbridge.Scope{"mcp:fs"},
			Paths: []string{"~/src/**"}, ArgsMatch: "x", When: "args.n > 1",
			Args: []drawbridge.Condition{
				{Name: "branch", Is: raw(`"main"`, `1`, `true`)},
				{Name: "n", Is: raw(`"z"`), Not: raw(`"x"`), Matches: "y", Above: &above, Present: &present},
			},
		},
		{At: "f:4", Effect: drawbridge.Deny, Tools: []string{"shell"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsInForce(t *testing.T) {
	const rule = "\n[[tools.%s.rules]]\n%s = 'deny'\ntools = 'x'\n"
	policy, authorization := fmt.Sprintf(rule, "policy", "effect"), fmt.Sprintf(rule, "authorization", "action")
	for text, rules := range map[string]int{
		"":               -1,
		"[tools.policy]": 0,
		policy:           1,
		authorization:    -1,
		"[tools.policy]\nenabled = false" + policy:                       -1,
		"[tools.authorization]\nenabled = true" + authorization:          1,
		policy + "[tools.authorization]\nenabled = true" + authorization: 2,
	} {
		got, err := read(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		n := -1
		if got != nil {
			n = len(got.Rules)
		}
		if n != rules {
			t.Errorf("%s: %d rules, want %d", text, n, rules)
		}
	}
}

// TestIdleRules: rules that nobody put in force are named, unless the table says that they are not to be.
func TestIdleRules(t *testing.T) {
	const rule = "[[tools.authorization.rules]]\naction = 'deny'\ntools = 'x'\n"
	for text, want := range map[string]string{
		"":                        "",
		rule + rule:               "tools.authorization has rules (2), and none is in force: it does not say enabled = true",
		"[tools.authorization]\n": "",
		"[tools.authorization]\nenabled = true\n" + rule:  "",
		"[tools.authorization]\nenabled = false\n" + rule: "",
	} {
		root, err := configfile.ParseTOML([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r := rulesReader{File: "f"}
		for _, m := range root.FindAll("tools", "authorization") {
			if err := r.readAuthorizationTable(m.Value); err != nil {
				t.Fatal(err)
			}
		}
		got, line := "", 0
		if idle := r.inactiveRules(); idle != nil {
			got, line = idle.Text, idle.Line
		}
		if got != want || (line == 1) != (want != "") {
			t.Errorf("%s: line %d: %q, want %q", text, line, got, want)
		}
	}
}

func TestMistakesAreRefusedWithTheirLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		line int
		want string
	}{
		{"[tools]\npolicy = 1", 2, "tools.policy must be a table"},
		{"[tools.policy]\ndefault = 'deny'", 2, `unknown setting "tools.policy.default"`},
		{"[tools.policy]\nrule = []", 2, `unknown setting "tools.policy.rule"; did you mean "rules"?`},
		{"[tools.policy]\ndefault_effect = 'Deny'", 2, `tools.policy.default_effect must be "allow", "ask" or "deny"`},
		{"[tools.policy]\nenabled = 'no'", 2, "tools.policy.enabled must be true or false"},
		{"[tools.policy.rules]\neffect = 'deny'", 1,
			"tools.policy.rules must be a list of tables: begin each with [[tools.policy.rules]]"},
		{"[[tools.policy.rules]]\ntools = 'x'", 1, "the rule has no effect"},
		{"[[tools.policy.rules]]\neffect = 'no'", 2, `effect must be "allow", "ask" or "deny"`},
		{"[[tools.policy.rules]]\neffect = 'deny'\ntoolz = 'x'", 3, `unknown member "toolz"; did you mean "tools"?`},
		{"[[tools.policy.rules]]\neffect = 'deny'\ntools = []", 3, "tools is empty: leave it out to mean all"},
		{"[[tools.policy.rules]]\neffect = 'deny'\ntools = [1]", 3, "tools must be a string or a list of strings"},
		{"[[tools.policy.rules]]\neffect = 'deny'\ntool = 'x'\ntools = 'y'", 4, "tools is written twice"},
		{"[[tools.policy.rules]]\neffect = 'deny'\nwhen = ''", 3, "when must be a string that is not empty"},
		{"[[tools.policy.rules]]\neffect = 'deny'\nargs = 1", 3,
			"args must be a table of arguments and their conditions"},
		{"[[tools.policy.rules]]\neffect = 'deny'\nargs.x = []", 3, "args.x is empty"},
		{"[[tools.policy.rules]]\neffect = 'deny'\nargs.x = { over = 1 }", 3, `unknown member "args.x.over"`},
		{"[[tools.policy.rules]]\neffect = 'deny'\nargs.x = { above = '1' }", 3, "args.x.above must be a number"},
		{"[[tools.authorization.rules]]\naction = 'deny'\nservers = 'x'", 3, `unknown member "servers"`},
		{"[[tools.authorization.rules]]\neffect = 'deny'", 2, `unknown member "effect"`},
	} {
		got, err := read(tt.text)
		wrong, ok := err.(*configfile.Error)
		if !ok || wrong.Line != tt.line || wrong.Text != tt.want || got != nil {
			t.Errorf("%s: %+v, %v, want line %d: %s", tt.text, err, got, tt.line, tt.want)
		}
	}
}

// FuzzRead: whatever the file says, it is read or refused, and a rule says its effect or is none. It is row FZ-11.
func FuzzRead(f *testing.F) {
	f.Add("[tools.policy]\ndefault_effect = 'deny'\n[[tools.policy.rules]]\neffect = 'allow'\nargs.x = { is = [1] }\n")
	f.Add("[tools.authorization]\nenabled = true\n[[tools.authorization.rules]]\naction = 'deny'\ntools = ['x']\n")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := read(text)
		if err != nil || rules == nil {
			return
		}
		for _, r := range rules.Rules {
			if r.At == "" || r.Tools != nil && len(r.Tools) == 0 {
				t.Errorf("%q: %+v", text, r)
			}
		}
	})
}
