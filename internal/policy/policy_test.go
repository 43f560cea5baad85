package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

const (
	allow = drawbridge.Allow
	ask   = drawbridge.Ask
	deny  = drawbridge.Deny
)

func compiled(t testing.TB, fallback drawbridge.Effect, rules ...drawbridge.Rule) *Policy {
	t.Helper()
	for i := range rules {
		rules[i].At = fmt.Sprintf("file:%d", i+1)
	}
	p, err := New(drawbridge.Rules{Default: fallback, Rules: rules, Home: "/home/ada"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var ada = drawbridge.Caller{
	Kind: drawbridge.Author, Principal: "ada", Scopes: []drawbridge.Scope{"mcp:*"},
	Client: json.RawMessage(`{"name":"Cursor","version":"1"}`),
}

// call is a question about a tools/call.
func call(server, tool, arguments string) Request {
	return Request{
		Caller: ada, Kind: KindTool, Method: "tools/call", Trust: "untrusted",
		Spec: drawbridge.Spec{
			Server: drawbridge.ServerID(server), Tool: tool, Name: drawbridge.CardName(server + "__" + tool),
			Definition: json.RawMessage(`{"name":"x","annotations":{"readOnlyHint":true}}`),
		},
		Params: json.RawMessage(`{"name":"x","arguments":` + arguments + `}`),
	}
}

// cleaned is a call of a tool whose own name has a character that no one sees.
func cleaned(server, tool string) Request {
	q := call(server, tool, `{}`)
	q.Spec.Tool += "\u200b"
	return q
}

// is is a condition that an argument is one of these.
func is(name string, values ...string) []drawbridge.Condition {
	c := drawbridge.Condition{Name: name}
	for _, v := range values {
		c.Is = append(c.Is, json.RawMessage(v))
	}
	return []drawbridge.Condition{c}
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	readOnly := drawbridge.Rule{Effect: allow, Tools: []string{"read_*"}}
	for name, tt := range map[string]struct {
		fallback drawbridge.Effect
		rules    []drawbridge.Rule
		q        Request
		want     Decision
	}{
		"no rules": {allow, nil, call("fs", "x", `{}`), Decision{Effect: allow,
			Why: "no rule matches, and default_effect is allow"}},
		"no default": {deny, nil, call("fs", "x", `{}`), Decision{Hidden: true,
			Why: "no rule matches, and default_effect is deny"}},
		"allow before deny": {
			allow, []drawbridge.Rule{readOnly, {Effect: deny}}, call("fs", "read_file", `{}`),
			Decision{Effect: allow, Rule: 1, At: "file:1", Why: "allowed by rule 1"},
		},
		"deny after it": {
			allow, []drawbridge.Rule{readOnly, {Effect: deny}}, call("fs", "write", `{}`),
			Decision{Rule: 2, At: "file:2", Hidden: true, Why: "denied by rule 2"},
		},
		"what depends on arguments is not hidden": {
			allow, []drawbridge.Rule{{Effect: deny, Paths: []string{"/etc/**"}}},
			call("fs", "read", `{"path":"/etc/passwd"}`),
			Decision{Rule: 1, At: "file:1", Why: "denied by rule 1"},
		},
		"ask": {
			allow, []drawbridge.Rule{{Effect: ask, Tools: []string{"fs:write"}}}, call("fs", "write", `{}`),
			Decision{Effect: ask, Rule: 1, At: "file:1", Why: "approval required by rule 1"},
		},
		"an argument twice": {
			allow, []drawbridge.Rule{{Effect: deny, Args: is("branch", `"main"`)}},
			call("git", "push", `{"branch":"dev","Branch":"main"}`),
			Decision{Rule: 1, At: "file:1", Why: "rule 1 cannot be judged: an argument is repeated"},
		},
		"an expression looks at what is not there": {
			allow, []drawbridge.Rule{{Effect: allow, When: `args.force == false`}}, call("git", "push", `{}`),
			Decision{Rule: 1, At: "file:1",
				Why: "rule 1 cannot be judged: when: it reads a missing value"},
		},
		"an expression costs too much": {
			allow, []drawbridge.Rule{{Effect: deny, When: `args.l.all(a, args.l.all(b, args.l.all(c, a <= b + c)))`}},
			call("git", "push", `{"l":[`+strings.Repeat("1,", 200)+`1]}`),
			Decision{Rule: 1, At: "file:1",
				Why: "rule 1 cannot be judged: when: evaluation stopped: the expression is too expensive"},
		},
	} {
		got := compiled(t, tt.fallback, tt.rules...).Decide(tt.q)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatARuleMatches(t *testing.T) {
	yes, above := true, 10.0
	type rule = drawbridge.Rule
	for _, tt := range []struct {
		rule    rule
		q       Request
		matches bool
	}{
		{rule{}, call("fs", "x", `{}`), true},
		{rule{Tools: []string{" FS__Write "}}, call("fs", "write", `{}`), true},
		{rule{Tools: []string{"fs:write"}}, call("fs", "write", `{}`), true},
		{rule{Tools: []string{"write"}}, call("fs", " Write", `{}`), true},
		{rule{Tools: []string{"wr?te"}}, call("fs", "wrïte", `{}`), true},
		{rule{Tools: []string{"shell"}}, cleaned("fs", "shell"), true},
		{rule{Tools: []string{"fs:shell"}}, cleaned("fs", "shell"), true},
		{rule{Tools: []string{"*_file"}}, call("fs", "write", `{}`), false},
		{rule{Prompts: []string{"*"}}, call("fs", "write", `{}`), false},
		{rule{Servers: []string{"git*"}}, call("github", "x", `{}`), true},
		{rule{Servers: []string{"drawbridge"}}, call("", "drawbridge_status", `{}`), true},
		{rule{Methods: []string{"prompts/*"}}, call("fs", "x", `{}`), false},
		{rule{Trust: []string{"sandboxed", "untrusted"}}, call("fs", "x", `{}`), true},
		{rule{Trust: []string{"untrusted"}}, call("", "drawbridge_status", `{}`), false},
		{rule{Callers: []string{"ad*"}}, call("fs", "x", `{}`), true},
		{rule{Callers: []string{"bob"}}, call("fs", "x", `{}`), false},
		{rule{Clients: []string{"cursor"}}, call("fs", "x", `{}`), true},
		{rule{Kinds: []string{"external"}}, call("fs", "x", `{}`), false},
		{rule{Scopes: []drawbridge.Scope{"mcp:fs"}}, call("fs", "x", `{}`), true},
		{rule{Scopes: []drawbridge.Scope{"write"}}, call("fs", "x", `{}`), false},
		{rule{ArgsMatch: `"/etc/`}, call("fs", "x", `{"a":"\u002fetc/x"}`), true},
		{rule{ArgsMatch: `"a":1,"b":2`}, call("fs", "x", `{"b": 2, "a": 1}`), true},
		{rule{Args: is("branch", `"release/*"`)}, call("git", "x", `{"branch":"release/1"}`), true},
		{rule{Args: is("branch", `"main"`)}, call("git", "x", `{}`), false},
		{rule{Args: is("BRANCH", `"main"`)}, call("git", "x", `{"branch":"main"}`), true},
		{rule{Args: is("o.force", `true`)}, call("git", "x", `{"o":{"force":true}}`), true},
		{rule{Args: is("n", `1`)}, call("git", "x", `{"n":1.0}`), true},
		{rule{Args: is("n", `"1"`)}, call("git", "x", `{"n":1}`), false},
		{rule{Args: is("o.force", `true`)}, call("git", "x", `{"o":{"FORCE":true}}`), true},
		{rule{Args: is("id", `"x"`)}, call("git", "x", `{"ıd":"x"}`), true},
		{rule{Args: []drawbridge.Condition{{Name: "n", Above: &above}}}, call("git", "x", `{"n":11}`), true},
		{rule{Args: []drawbridge.Condition{{Name: "n", Above: &above}}}, call("git", "x", `{"n":1e400}`), true},
		{rule{Args: []drawbridge.Condition{{Name: "n", Above: &above}}}, call("git", "x", `{"n":"eleven"}`), false},
		{rule{Args: []drawbridge.Condition{{Name: "u", Matches: `^https://`}}},
			call("git", "x", `{"u":"http://a"}`), false},
		{rule{Args: []drawbridge.Condition{{Name: "u", Not: []json.RawMessage{[]byte(`"a*"`)}}}},
			call("git", "x", `{"u":"b"}`), true},
		{rule{Args: []drawbridge.Condition{{Name: "u", Not: []json.RawMessage{[]byte(`"a*"`)}}}},
			call("git", "x", `{}`), false},
		{rule{Args: []drawbridge.Condition{{Name: "u", Present: &yes}}}, call("git", "x", `{}`), false},
		{rule{When: `caller.principal == "ada" && caller.client == "cursor" && "mcp:*" in caller.scopes`},
			call("git", "x", `{}`), true},
		{rule{When: `caller["client"] == "cursor" && "client" in caller`}, call("git", "x", `{}`), true},
		{rule{When: `annotations.readOnlyHint && trust == "untrusted" && server == "git" && tool == "x"`},
			call("git", "x", `{}`), true},
		{rule{When: `kind == "tool" && method == "tools/call" && args.n > 1 && args.n < 2.5`},
			call("git", "x", `{"n":2}`), true},
		{rule{When: `has(args.path) && args.path.matches("^/tmp/")`}, call("git", "x", `{}`), false},
	} {
		tt.rule.Effect = ask
		d := compiled(t, allow, tt.rule).Decide(tt.q)
		if got := d.Effect == ask; got != tt.matches {
			t.Errorf("%+v with %s %s: %v (%s), want %v", tt.rule, tt.q.Spec.Name, tt.q.Params, got, d.Why, tt.matches)
		}
	}
}

// TestARuleThatDoesNotAllowTakesWhatServersTake has arguments that servers which are not strict take for what a rule
// names. No rule that allows does.
func TestARuleThatDoesNotAllowTakesWhatServersTake(t *testing.T) {
	above, present, absent := 10.0, true, false
	for _, tt := range []struct {
		conditions    []drawbridge.Condition
		arguments     string
		loose, strict bool
	}{
		{is("force", `true`), `{"force":true}`, true, true},
		{is("force", `true`), `{"force":"true"}`, true, false},
		{is("force", `true`), `{"force":" Yes"}`, true, false},
		{is("force", `true`), `{"force":"false"}`, false, false},
		{is("n", `1`), `{"n":"1.0"}`, true, false},
		{is("force", `true`), `{"force":1}`, true, false},
		{is("force", `true`), `{"force":1.0}`, true, false},
		{is("force", `true`), `{"force":"Y"}`, true, false},
		{is("force", `true`), `{"force":"t"}`, true, false},
		{is("force", `true`), `{"force":"1.0"}`, false, false},
		{is("force", `false`), `{"force":"n"}`, true, false},
		{is("force", `false`), `{"force":0}`, true, false},
		{is("n", `1`), `{"n":true}`, true, false},
		{is("n", `1000`), `{"n":"1_000"}`, true, false},
		{is("id", `"1"`), `{"id":1}`, false, false},
		{[]drawbridge.Condition{{Name: "n", Above: &above}}, `{"n":"5_000"}`, true, false},
		{[]drawbridge.Condition{{Name: "n", Above: &above}}, `{"n":"0x5000"}`, true, false},
		{is("id", `9007199254740993`), `{"id":9007199254740992}`, true, false},
		{is("id", `9007199254740993`), `{"id":90071992547409930.0e-1}`, true, true},
		{is("id", `0`), `{"id":-0.0e9}`, true, true},
		{is("id", `1`), `{"id":1e-99999999999999999999}`, false, false},
		{[]drawbridge.Condition{{Name: "id", Not: []json.RawMessage{[]byte(`9007199254740993`)}}},
			`{"id":9007199254740992}`, true, false},
		{is("branch", `"main"`), `{"branch":["dev",["main"]]}`, true, false},
		{is("branch", `"main"`), `{"branch":{"name":"main"}}`, false, false},
		{[]drawbridge.Condition{{Name: "n", Above: &above}}, `{"n":"5000"}`, true, false},
		{[]drawbridge.Condition{{Name: "n", Above: &above}}, `{"n":"1e999"}`, true, false},
		{[]drawbridge.Condition{{Name: "n", Above: &above}}, `{"n":["1","9"]}`, false, false},
		{[]drawbridge.Condition{{Name: "cmd", Matches: "^rm"}}, `{"cmd":["ls","rm"]}`, true, false},
		{[]drawbridge.Condition{{Name: "x", Not: []json.RawMessage{[]byte(`"true"`)}}}, `{"x":"true"}`, false, false},
		{is("o.force", `true`), `{"o":[{"force":true}]}`, true, false},
		{is("o.force", `true`), `{"o":[1,[{"a":1},{"Force":["yes"]}]]}`, true, false},
		{is("o.p.force", `true`), `{"o":[{"p":[{"force":true}]}]}`, true, false},
		{is("o.force", `true`), `{"o":"[{\"force\":true}]"}`, true, false},
		{is("o.force", `true`), `{"o":[{"force":false},{}]}`, false, false},
		{is("o.force", `true`), `{"o":["force",true]}`, false, false},
		{[]drawbridge.Condition{{Name: "o.force", Not: []json.RawMessage{[]byte(`false`)}}},
			`{"o":[{"force":false},{"force":true}]}`, true, false},
		{[]drawbridge.Condition{{Name: "o.force", Present: &present}}, `{"o":[{"force":false}]}`, true, false},
		// to who does not look into lists
		{[]drawbridge.Condition{{Name: "o.force", Present: &absent}}, `{"o":[{"force":false}]}`, true, false},
		{[]drawbridge.Condition{{Name: "o.force", Present: &absent}}, `{"o":["a"]}`, true, true},
	} {
		q := call("git", "x", tt.arguments)
		loose := compiled(t, allow, drawbridge.Rule{Effect: deny, Args: tt.conditions}).Decide(q).Effect == deny
		strict := compiled(t, deny, drawbridge.Rule{Effect: allow, Args: tt.conditions}).Decide(q).Effect == allow
		if loose != tt.loose || strict != tt.strict {
			t.Errorf("%+v with %s: denied %v, allowed %v; want %v, %v", tt.conditions, tt.arguments, loose, strict,
				tt.loose, tt.strict)
		}
	}
}

// TestAnArgumentByTwoNamesCannotBeJudged has one argument by dots and by a name with dots: a server looks at one of
// them.
func TestAnArgumentByTwoNamesCannotBeJudged(t *testing.T) {
	for _, arguments := range []string{`{"o.force":false,"o":{"force":true}}`, `{"o.force":false,"o":[{"force":true}]}`,
		`{"o":{"force":true},"O.Force":false}`, `{"o":{"force":true,"a":1},"o.force":null}`} {
		for _, effect := range []drawbridge.Effect{allow, ask, deny} {
			p := compiled(t, allow, drawbridge.Rule{Effect: effect, Args: is("o.force", `true`)})
			if d := p.Decide(call("git", "x", arguments)); d.Effect != deny || !strings.Contains(d.Why,
				"an argument is repeated") {
				t.Errorf("%s by a rule that says %s: %s (%s)", arguments, effect, d.Effect, d.Why)
			}
		}
	}
}

// TestEachExpressionHasWhatItLooksAt asks one about the client after one that has read the rest of the caller.
func TestEachExpressionHasWhatItLooksAt(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, When: `caller.principal == "bob" || server == "x"`},
		drawbridge.Rule{Effect: deny,
			When: `caller.client == "cursor" && method == "tools/call" && trust == "untrusted"`})
	if d := p.Decide(call("git", "x", `{}`)); d.Effect != deny || d.Rule != 2 || d.Why != "denied by rule 2" {
		t.Errorf("%+v", d)
	}
}

// TestAnExpressionTakesNamesInAnyCase: a server made in Go may take Force for force, and so do conditions.
func TestAnExpressionTakesNamesInAnyCase(t *testing.T) {
	for _, tt := range []struct {
		when, arguments string
		matches         bool
	}{
		{`has(args.force) && args.force`, `{"Force":true}`, true},
		{`has(args.force)`, `{"FORCE":1}`, true},
		{`args.path.startsWith("/etc")`, `{"Path":"/etc/x"}`, true},
		{`args["path"] == "/etc"`, `{"pa\u0054h":"/etc"}`, true},
		{`args.o.force == true && size(args.o) == 1`, `{"O":{"Force":true}}`, true},
		{`args.Path == "a" && args.path == "a"`, `{"Path":"a"}`, true},
		{`size(args) == 1 && "Path" in args && has(args.x) == false`, `{"Path":"a"}`, true},
		{`has(args.force)`, `{"forced":true}`, false},
	} {
		p := compiled(t, allow, drawbridge.Rule{Effect: ask, When: tt.when})
		if d := p.Decide(call("fs", "x", tt.arguments)); (d.Effect == ask) != tt.matches || d.Effect == deny {
			t.Errorf("%s with %s: %v (%s)", tt.when, tt.arguments, d.Effect, d.Why)
		}
	}
}

func TestHiding(t *testing.T) {
	bob := ada
	bob.Principal = "bob"
	server := drawbridge.Spec{Server: "fs"}
	tool := call("fs", "write", `{}`).Spec
	for name, tt := range map[string]struct {
		fallback     drawbridge.Effect
		rules        []drawbridge.Rule
		tool, server bool // hidden from ada
		bob          bool // the tool is hidden from bob
	}{
		"nothing": {allow, nil, false, false, false},
		"a tool": {allow, []drawbridge.Rule{{Effect: deny, Tools: []string{"write"}}},
			true, false, true},
		"all tools": {allow, []drawbridge.Rule{{Effect: deny, Tools: []string{"*"}}}, true, false, true},
		"a server":  {allow, []drawbridge.Rule{{Effect: deny, Servers: []string{"fs"}}}, true, true, true},
		"except for one tool": {allow, []drawbridge.Rule{{Effect: allow, Tools: []string{"read"}},
			{Effect: deny, Servers: []string{"fs"}}}, true, false, true},
		"except for some arguments": {deny, []drawbridge.Rule{{Effect: allow, Paths: []string{"/ok"}}},
			false, false, false},
		"asked for": {deny, []drawbridge.Rule{{Effect: ask, Servers: []string{"fs"}}},
			false, false, false},
		"of another caller": {deny, []drawbridge.Rule{{Effect: allow, Callers: []string{"ada"}}},
			false, false, true},
		"an expression": {allow, []drawbridge.Rule{{Effect: deny, When: `caller.principal == "bob"`}},
			false, false, true},
		"one that fails": {allow, []drawbridge.Rule{{Effect: allow, When: `annotations.none`}},
			true, false, true},
		"one about arguments": {deny, []drawbridge.Rule{{Effect: allow, When: `args.x`}}, false, false, false},
		"another method": {deny, []drawbridge.Rule{{Effect: allow, Methods: []string{"tasks/*"}}},
			true, false, true},
	} {
		p := compiled(t, tt.fallback, tt.rules...)
		got := []bool{p.IsHidden(&ada, KindTool, &tool, "untrusted"), p.IsHidden(&ada, "", &server, "untrusted"),
			p.IsHidden(&bob, KindTool, &tool, "untrusted")}
		if diff := cmp.Diff([]bool{tt.tool, tt.server, tt.bob}, got); diff != "" {
			t.Errorf("%s: tool, server, bob's tool (-want +got):\n%s", name, diff)
		}
		if differ := p.CallerClass(ada) != p.CallerClass(bob); differ != (tt.tool != tt.bob) {
			t.Errorf("%s: classes differ: %v", name, differ)
		}
	}
}

// TestTasks: who was let in to a tool can ask after what became of the call.
// TestCallersOfOneClassAreShownTheSame has callers whose names differ in what expressions see, and patterns do not.
func TestCallersOfOneClassAreShownTheSame(t *testing.T) {
	p := compiled(t, allow, drawbridge.Rule{Effect: deny, When: `caller.principal == "Ada"`})
	spec := drawbridge.Spec{Server: "fs", Tool: "x", Name: "fs__x"}
	one, other := ada, ada
	one.Principal, other.Principal = "Ada", "ada"
	if p.IsHidden(&one, KindTool, &spec, "") == p.IsHidden(&other, KindTool, &spec, "") {
		t.Fatal("the same is hidden from both")
	}
	if p.CallerClass(one) == p.CallerClass(other) {
		t.Errorf("both are of the class %q", p.CallerClass(one))
	}
}

// TestACompletionIsJudgedByWhatItCompletes: who completes a path has the server look into its directory.
func TestACompletionIsJudgedByWhatItCompletes(t *testing.T) {
	yes := true
	etc, branch := drawbridge.Rule{Paths: []string{"/etc/**"}}, drawbridge.Rule{Args: is("branch", `"main"`)}
	there := drawbridge.Rule{Args: []drawbridge.Condition{{Name: "branch", Present: &yes}}}
	for _, tt := range []struct {
		rule            drawbridge.Rule
		params          string
		denied, allowed bool
	}{
		{etc, `{"argument":{"name":"path","value":"/etc/"}}`, true, true},
		{etc, `{"argument":{"name":"path","value":"/home/"}}`, false, false},
		{etc, `{"argument":{"name":"x","value":"a"},"context":{"arguments":{"dir":"/etc/ssh"}}}`, true, true},
		{etc, `{"argument":{"name":"path","value":"/home/"},"context":{"arguments":{"path":"/etc/ssh"}}}`, true, false},
		{etc, `{"argument":{"name":"path","value":"/home/","VALUE":"/etc/"}}`, true, false},
		{etc, `{"argument":["path"]}`, true, false},
		{branch, `{"argument":{"name":"branch","value":"main"}}`, true, true},
		{there, `{"argument":{"name":"path","value":""},"arguments":{"branch":"x"}}`, false, false},
		{there, `{}`, false, false},
	} {
		for kind, spec := range map[string]drawbridge.Spec{
			KindPrompt: {Server: "fs", Tool: "p", Name: "fs__p"}, KindTemplate: {Server: "fs", Tool: "db:///{path}",
				Name: "db:///{path}"},
		} {
			q := Request{Caller: ada, Kind: kind, Spec: spec, Method: "completion/complete",
				Params: json.RawMessage(tt.params), Trust: "untrusted"}
			denies, allows := tt.rule, tt.rule
			denies.Effect, allows.Effect = deny, allow
			denied := compiled(t, allow, denies).Decide(q).Effect == deny
			allowed := compiled(t, deny, allows).Decide(q).Effect == allow
			if denied != tt.denied || allowed != tt.allowed {
				t.Errorf("%s of a %s: denied %v, allowed %v, want %v and %v", tt.params, kind, denied, allowed,
					tt.denied, tt.allowed)
			}
		}
	}
}

func TestTasks(t *testing.T) {
	q := Request{Caller: ada, Kind: KindTask, Method: "tasks/get", Spec: drawbridge.Spec{Server: "fs", Name: "t1",
		Tool: "1"}, Trust: "untrusted"}
	for _, tt := range []struct {
		rules []drawbridge.Rule
		want  drawbridge.Effect
	}{
		{[]drawbridge.Rule{{Effect: allow, Tools: []string{"fs__build"}}}, allow},
		{[]drawbridge.Rule{{Effect: allow, Servers: []string{"other"}}}, deny},
		{[]drawbridge.Rule{{Effect: deny, Methods: []string{"tasks/get"}}, {Effect: allow}}, deny},
	} {
		if got := compiled(t, deny, tt.rules...).Decide(q); got.Effect != tt.want {
			t.Errorf("%+v: %+v, want %v", tt.rules, got, tt.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		rule drawbridge.Rule
		want string
	}{
		{drawbridge.Rule{Tools: []string{}}, "f:1: tools is empty: remove it for a rule that matches everything"},
		{drawbridge.Rule{Tools: []string{" "}}, "f:1: tools has an empty text"},
		{drawbridge.Rule{Trust: []string{"full"}}, "f:1: trust may have trusted, untrusted, sandboxed"},
		{drawbridge.Rule{Kinds: []string{"robot"}}, "f:1: kinds may have author, agent, external, import, sandbox"},
		{drawbridge.Rule{ArgsMatch: "("},
			"f:1: args_match: the regular expression is wrong: error parsing regexp: missing closing ): `(`"},
		{drawbridge.Rule{ArgsMatch: strings.Repeat("a", 1025)},
			"f:1: args_match: the regular expression has more than 1024 bytes"},
		{drawbridge.Rule{When: "args.x =="}, "f:1: when, character 10: Syntax error: mismatched input '<EOF>'"},
		{drawbridge.Rule{When: "argz.x"}, "f:1: when, character 1: undeclared reference to 'argz'"},
		{drawbridge.Rule{When: "1 + 1"}, "f:1: when returns int, must return bool"},
		{drawbridge.Rule{When: "args"}, "f:1: when returns map(string, dyn), must return bool"},
		{drawbridge.Rule{Args: []drawbridge.Condition{{Name: "x"}}}, "f:1: args.x asks nothing"},
		{drawbridge.Rule{Effect: 9}, "f:1: effect must be allow, ask or deny"},
	} {
		tt.rule.At = "f:1"
		_, err := New(drawbridge.Rules{Rules: []drawbridge.Rule{tt.rule}})
		if wrong, ok := errors.AsType[*RuleError](err); !ok || !strings.HasPrefix(wrong.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.rule, err, tt.want)
		}
	}
	if _, err := New(drawbridge.Rules{Rules: make([]drawbridge.Rule, MaxRules+1)}); err == nil {
		t.Errorf("%d rules pass", MaxRules+1)
	}
	if _, err := New(
		drawbridge.Rules{Rules: []drawbridge.Rule{{Tools: []string{strings.Repeat("x", MaxRulesBytes)}}}}); err == nil {
		t.Error("256 KiB pass")
	}
}

func TestExplainNamesWhatDecided(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, Servers: []string{"other"}},
		drawbridge.Rule{Effect: deny, Paths: []string{"/etc/**"}},
		drawbridge.Rule{Effect: allow, Tools: []string{"read"}},
		drawbridge.Rule{Effect: deny})
	d, steps := p.Explain(call("fs", "read", `{"path":"/home/x"}`))
	if diff := cmp.Diff(Decision{Effect: allow, Rule: 3, At: "file:3", Why: "allowed by rule 3"}, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]TraceStep{
		{Rule: 1, At: "file:1", Effect: "deny", Match: "no", DecidedBy: "servers"},
		{Rule: 2, At: "file:2", Effect: "deny", Match: "no", DecidedBy: "paths"},
		{Rule: 3, At: "file:3", Effect: "allow", Match: "yes"},
	}, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzPattern is row FZ-11: a pattern that covers another matches what that does.
func FuzzPattern(f *testing.F) {
	f.Add("a*b?c", "aXXbYc")
	f.Add("**", "")
	f.Add("*\xff?", "é\xff")
	f.Fuzz(func(t *testing.T, glob, text string) {
		p := globPattern(glob)
		if p.covers(globPattern(text)) && !strings.ContainsAny(text, "*?") && !p.match(text) {
			t.Errorf("%q covers %q and does not match it", glob, text)
		}
		if !globPattern(text).match(text) && !strings.ContainsAny(text, "*?") {
			t.Errorf("%q does not match itself", text)
		}
		newPathGlob(glob, "/home").match(strings.Split(cleanPath(text, "/home"), "/"))
	})
}

// FuzzArguments: whatever a caller sends, a decision comes, and none that lets in what the rules cannot judge. It is
// row FZ-11.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"arguments":{"path":"/etc/x"}}`, `{"arguments":{"a":1,"a":2}}`,
		`{"arguments":[]}`, `{"arguments":{"n":1e400,"l":[[[{}]]]}}`} {
		f.Add(seed)
	}
	p := compiled(f, deny,
		drawbridge.Rule{Effect: deny, Paths: []string{"/etc/**"}}, drawbridge.Rule{Effect: deny, ArgsMatch: "x"},
		drawbridge.Rule{Effect: allow, When: `!has(args.n) || args.n == 1`,
			Args: []drawbridge.Condition{{Name: "a", Above: new(float64)}}})
	f.Fuzz(func(t *testing.T, params string) {
		q := call("fs", "x", `{}`)
		q.Params = json.RawMessage(params)
		if d := p.Decide(q); d.Effect == allow && !json.Valid([]byte(params)) {
			t.Errorf("%q is let in: %+v", params, d)
		}
	})
}

// FuzzRules is row FZ-11: whatever a rule says, it is refused or it decides; what it cannot judge is no; and of rules
// that deny it does not matter which comes first.
func FuzzRules(f *testing.F) {
	f.Add("read_*", "etc", `args.path.startsWith("/etc")`, "/etc/**", `{"arguments":{"path":"/etc/x"}}`)
	f.Add("*", "(a|b)+$", `args.n / args.m > 1`, "~/x", `{"arguments":{"n":1,"m":0}}`)
	f.Add("?", "", `[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, a+b+c > 0)))`, "", `{"arguments":[]}`)
	f.Add("", "[", "1 +", "**/..", `{"arguments":{"a":1,"a":2}}`)
	f.Fuzz(func(t *testing.T, tool, match, when, path, params string) {
		one := drawbridge.Rule{At: "one", Effect: deny, Tools: []string{tool}, ArgsMatch: match}
		two := drawbridge.Rule{At: "two", Effect: deny, When: when, Paths: []string{path}}
		first, err := New(drawbridge.Rules{Default: allow, Rules: []drawbridge.Rule{one, two}, Home: "/home/ada"})
		other, err2 := New(drawbridge.Rules{Default: allow, Rules: []drawbridge.Rule{two, one}, Home: "/home/ada"})
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v in one order, %v in the other", err, err2)
		}
		if err != nil {
			return
		}
		q := call("fs", "read_file", `{}`)
		q.Params = json.RawMessage(params)
		d, steps := first.Explain(q)
		if again := first.Decide(q); d != again {
			t.Errorf("%+v, and then %+v", d, again)
		}
		if d.Effect != other.Decide(q).Effect {
			t.Errorf("%s in one order, %s in the other", d.Effect, other.Decide(q).Effect)
		}
		if len(steps) > 0 && steps[len(steps)-1].Match == "error" && d.Effect != deny {
			t.Errorf("what cannot be judged is let in: %+v", steps)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	for name, when := range map[string]string{"plain": "",
		"cel": `has(args.path) && args.path.startsWith("/etc") && caller.principal != "root"`} {
		var rules []drawbridge.Rule
		for i := range 19 {
			rules = append(rules, drawbridge.Rule{Effect: deny, Servers: []string{"server" + string(rune('a'+i))},
				Tools: []string{"delete_*", "drop_*"}})
		}
		rules = append(rules, drawbridge.Rule{Effect: deny, Paths: []string{"/etc/**"}},
			drawbridge.Rule{Effect: deny, When: when})
		if when == "" {
			rules = rules[:20]
		}
		p := compiled(b, allow, rules...)
		q := call("fs", "read_file", `{"path":"/home/ada/src/main.go","head":20}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := p.Decide(q); d.Effect != allow {
					b.Fatal(d)
				}
			}
		})
	}
}
