package policy

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func TestReplay(t *testing.T) {
	type rule = drawbridge.Rule
	whole := call("fs", "write", `{"path":"/etc/x","token":"[redacted]","branch":"main"}`)
	token := UnknownFields{Arguments: []string{"token"}}
	yes := true
	for name, tt := range map[string]struct {
		rules []rule
		gaps  UnknownFields
		want  drawbridge.Effect
		lack  string
	}{
		"nothing is missing": {[]rule{{Effect: deny, Args: is("token", `"x"`)}}, UnknownFields{}, allow, ""},
		"another argument":   {[]rule{{Effect: deny, Args: is("branch", `"main"`)}}, token, deny, ""},
		"the argument": {[]rule{{Effect: deny, Args: is("Token", `"x"`)}}, token, 0,
			"rule 1 looks at the argument token, which is not on record"},
		"a part of it": {[]rule{{Effect: deny, Args: is("token.value", `"x"`)}}, token, 0,
			"rule 1 looks at the argument token, which is not on record"},
		"whether it is there": {[]rule{{Effect: deny, Args: []drawbridge.Condition{{Name: "token",
			Present: &yes}}}}, token, deny, ""},
		"all of them": {[]rule{{Effect: deny, ArgsMatch: "x"}}, token, 0,
			"rule 1 looks at all of the arguments, which is not on record"},
		"a path that is known": {[]rule{{Effect: deny, Paths: []string{"/etc/**"}}}, token, deny, ""},
		"a path that is not": {[]rule{{Effect: deny, Paths: []string{"/opt/**"}}}, token, 0,
			"rule 1 looks at the argument token, which is not on record"},
		"a path that is let in": {[]rule{{Effect: ask, Paths: []string{"/etc/**"}}, {Effect: deny}},
			token, ask, ""},
		"one that may be": {[]rule{{Effect: allow, Paths: []string{"/etc/**"}}, {Effect: deny}}, token, 0,
			"rule 1 looks at the argument token, which is not on record"},
		"one that cannot be": {[]rule{{Effect: allow, Paths: []string{"/opt/**"}}, {Effect: deny}},
			token, deny, ""},
		"a rule before": {[]rule{{Effect: deny, Tools: []string{"write"}}, {Effect: ask, ArgsMatch: "x"}},
			token, deny, ""},
		"a rule that cannot match": {[]rule{{Effect: deny, Tools: []string{"read"}, ArgsMatch: "x"}},
			token, allow, ""},
		"a condition that does not": {[]rule{{Effect: deny, Args: append(is("branch", `"dev"`),
			is("token", `"x"`)...)}}, token, allow, ""},
		"it would say the same": {[]rule{{Effect: deny, ArgsMatch: "x"}, {Effect: deny}}, token, deny, ""},
		"an expression":         {[]rule{{Effect: deny, When: `args.branch == "main"`}}, token, deny, ""},
		"one about it": {[]rule{{Effect: deny, When: `args.branch == "main" && args["token"] == "x"`}},
			token, 0, "rule 1 looks at the argument token, which is not on record"},
		"one that asks for it": {[]rule{{Effect: deny, When: `has(args.token)`}}, token, deny, ""},
		"one about all": {[]rule{{Effect: deny, When: `args.exists(a, a == "x")`}}, token, 0,
			"rule 1 looks at all of the arguments, which is not on record"},
		"one that may fail": {[]rule{{Effect: allow, When: `args.token > 1`}}, token, 0,
			"rule 1 looks at the argument token, which is not on record"},
		"none is kept": {[]rule{{Effect: deny, When: `has(args.x)`}}, UnknownFields{AllArguments: true}, 0,
			"rule 1 looks at the arguments, which is not on record"},
		"nor matters": {[]rule{{Effect: ask, Servers: []string{"fs"}}},
			UnknownFields{AllArguments: true}, ask, ""},
		"scopes": {[]rule{{Effect: deny, Scopes: []drawbridge.Scope{"x"}}},
			UnknownFields{Scopes: true}, 0, "rule 1 looks at the scopes of the caller, which is not on record"},
		"scopes in an expression": {[]rule{{Effect: deny, When: `"x" in caller.scopes`}}, UnknownFields{Scopes: true},
			0, "rule 1 looks at the scopes of the caller, which is not on record"},
		"the principal in one": {[]rule{{Effect: deny, When: `caller.principal == "ada"`}},
			UnknownFields{Scopes: true, Client: true}, deny, ""},
		"the client": {[]rule{{Effect: deny, Clients: []string{"x"}}}, UnknownFields{Client: true}, 0,
			"rule 1 looks at the name of the client, which is not on record"},
		"trust": {[]rule{{Effect: deny, Trust: []string{"sandboxed"}}}, UnknownFields{Trust: true},
			0, "rule 1 looks at the trust of the server, which is not on record"},
		"trust in an expression": {[]rule{{Effect: deny, When: `trust == "x"`}}, UnknownFields{Trust: true}, 0,
			"rule 1 looks at the trust of the server, which is not on record"},
		"annotations": {[]rule{{Effect: deny, When: `!annotations.readOnlyHint`}},
			UnknownFields{Annotations: true}, 0, "rule 1 looks at the annotations, which is not on record"},
		"the name": {[]rule{{Effect: deny, Tools: []string{"w*"}}}, UnknownFields{Name: true}, 0,
			"rule 1 looks at the name, which is not on record"},
		"the name of something else": {
			[]rule{{Effect: deny, Prompts: []string{"w*"}}}, UnknownFields{Name: true}, allow, "",
		},
	} {
		d, lack := compiled(t, allow, tt.rules...).Replay(whole, tt.gaps)
		if d.Effect != tt.want || lack != tt.lack {
			t.Errorf("%s: %v %q, want %v %q", name, d.Effect, lack, tt.want, tt.lack)
		}
	}
}

// TestReplayHidesAsDecideDoes: without gaps a replay is the decision, for whatever was asked.
func TestReplayHidesAsDecideDoes(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, Tools: []string{"write"}}, drawbridge.Rule{Effect: deny,
			Methods: []string{"prompts/get"}},
		drawbridge.Rule{Effect: ask, Args: is("x", `1`)})
	prompt := call("fs", "hello", `{}`)
	prompt.Kind, prompt.Method, prompt.Params = KindPrompt, "completion/complete", nil
	task := Request{Caller: ada, Kind: KindTask, Method: "tasks/get", Spec: drawbridge.Spec{Server: "fs",
		Name: "t", Tool: "t"}}
	for _, q := range []Request{call("fs", "write", `{}`), call("fs", "read", `{"x":1}`),
		call("fs", "read", `{}`), prompt, task} {
		d, lack := p.Replay(q, UnknownFields{})
		if diff := cmp.Diff(p.Decide(q), d); diff != "" || lack != "" {
			t.Errorf("%s %s: %s (-want +got):\n%s", q.Method, q.Spec.Name, lack, diff)
		}
	}
}

// TestAReplayNeverGuesses takes arguments, scopes, trust, the client and annotations away from calls, and holds what a
// replay says nevertheless against the truth, under random rules.
func TestAReplayNeverGuesses(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("POLICY_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("POLICY_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	words := []string{`"a"`, `"/etc/x"`, `"/home/b"`, `1`, `true`, `"file:///etc/y"`, `{"dest":"/home/c"}`,
		`"[\"/etc/x\"]"`, `"{\"path\":\"/home/b\"}"`}
	judged, unclear := 0, 0
	var p *Policy
	for i := range 600 {
		if i%12 == 0 { // to compile rules takes longer than to ask them
			p = compiled(t, drawbridge.Effect(r.IntN(3)), randomOf(r)...)
		}
		object := map[string]json.RawMessage{}
		for _, name := range []string{"path", "b", "c"} {
			if r.IntN(4) > 0 {
				object[name] = json.RawMessage(words[r.IntN(len(words))])
			}
		}
		q := questionOf(r, object)
		truth := p.Decide(q)
		g := UnknownFields{Scopes: r.IntN(3) == 0, Trust: r.IntN(3) == 0, Client: r.IntN(3) == 0,
			Annotations: r.IntN(3) == 0, AllArguments: r.IntN(6) == 0}
		for name := range object {
			if r.IntN(3) == 0 {
				g.Arguments = append(g.Arguments, name)
				object[name] = json.RawMessage(`"[redacted]"`)
			}
		}
		veiled := questionOf(r, object)
		veiled.Caller, veiled.Trust, veiled.Spec = q.Caller, q.Trust, q.Spec
		if g.AllArguments {
			veiled.Params = nil
		}
		if g.Scopes {
			veiled.Caller.Scopes = nil
		}
		if g.Client {
			veiled.Caller.Client = nil
		}
		if g.Trust {
			veiled.Trust = ""
		}
		if g.Annotations {
			veiled.Spec.Definition = nil
		}
		d, lack := p.Replay(veiled, g)
		switch {
		case lack != "":
			unclear++
		case d.Effect != truth.Effect:
			t.Fatalf("%+v\nof %s with the gaps %+v: a replay says %v, and the truth is %v (%s)", p.rules, q.Params, g,
				d.Effect, truth.Effect, truth.Why)
		default:
			judged++
		}
	}
	if judged < 60 || unclear < 10 {
		t.Errorf("%d judged, %d unclear: the rules do not test this", judged, unclear)
	}
}

func questionOf(r *rand.Rand, object map[string]json.RawMessage) Request {
	text, _ := json.Marshal(object)
	q := call("fs", "write", string(text))
	q.Caller.Scopes = [][]drawbridge.Scope{{"*"}, {"mcp:fs"}, nil}[r.IntN(3)]
	q.Caller.Client = json.RawMessage([]string{`{"name":"cursor"}`, `{"name":"x"}`}[r.IntN(2)])
	q.Trust = []string{"trusted", "untrusted"}[r.IntN(2)]
	q.Spec.Definition = json.RawMessage([]string{`{}`, `{"annotations":{"readOnlyHint":true}}`,
		`{"annotations":{"readOnlyHint":false},"inputSchema":{"properties":{"b":{"type":"string"}}}}`}[r.IntN(3)])
	return q
}

// randomOf makes rules about all that may be missing.
func randomOf(r *rand.Rand) (rules []drawbridge.Rule) {
	pick := func(from ...string) []string {
		if r.IntN(3) > 0 {
			return nil
		}
		return []string{from[r.IntN(len(from))]}
	}
	for range 1 + r.IntN(4) {
		rule := drawbridge.Rule{
			Effect: drawbridge.Effect(r.IntN(3)), Trust: pick("trusted", "untrusted"), Clients: pick("cursor", "x*"),
			Paths: pick("/etc/**", "/home/*"), Tools: pick("write", "read", "*"),
		}
		if r.IntN(4) == 0 {
			rule.Scopes = []drawbridge.Scope{"mcp:fs"}
		}
		if r.IntN(4) == 0 {
			rule.ArgsMatch = []string{`"a"`, `true`}[r.IntN(2)]
		}
		if r.IntN(3) == 0 {
			rule.Args = is([]string{"b", "c", "path"}[r.IntN(3)], []string{`"a"`, `1`}[r.IntN(2)])
		}
		if when := pick(`has(args.b)`, `args.b == "a"`, `args.b == "a" || args.c == 1`, `args.size() > 1`,
			`annotations.readOnlyHint`,
			`has(annotations.readOnlyHint)`, `"mcp:fs" in caller.scopes`, `caller.client == "x"`, `trust == "trusted"`,
			`caller.principal == "ada"`,
			`caller.size() > 3 && has(args.c)`, `has(args.c) ? args.c == 1 : trust == "trusted"`,
			`has(caller.scopes) && annotations.size() == 1`); when != nil {
			rule.When = when[0]
		}
		rules = append(rules, rule)
	}
	return rules
}
