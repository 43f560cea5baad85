package policy

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestPolicyRows are rows of the security matrix that rules alone decide.
func TestPolicyRows(t *testing.T) {
	for name, row := range map[string]func(t *testing.T){
		"PO-1 what nobody allowed is denied": nothingIsAllowedUnsaid,
		"PO-2 deny beats allow":              denyBeatsAllow,
		"PO-4 what fails is denied":          whatFailsIsDenied,
		"PO-6 by what a call would touch":    byWhatACallWouldTouch,
	} {
		t.Run(name, row)
	}
}

// nothingIsAllowedUnsaid: with a default of deny, an unknown server, tool, caller or argument is denied, and hidden
// where no argument could help.
func nothingIsAllowedUnsaid(t *testing.T) {
	p := compiled(t, deny, drawbridge.Rule{Effect: allow, Servers: []string{"fs"}, Tools: []string{"read"},
		Callers: []string{"ada"}, Args: is("mode", `"plain"`)})
	bob := call("fs", "read", `{"mode":"plain"}`)
	bob.Caller.Principal = "bob"
	for _, tt := range []struct {
		q      Request
		effect drawbridge.Effect
		hidden bool
	}{
		{call("fs", "read", `{"mode":"plain"}`), allow, false},
		{call("fs", "read", `{"mode":"other"}`), deny, false},
		{call("fs", "read", `{}`), deny, false},
		{call("fs", "write", `{"mode":"plain"}`), deny, true},
		{call("web", "read", `{"mode":"plain"}`), deny, true},
		{bob, deny, true},
	} {
		if d := p.Decide(tt.q); d.Effect != tt.effect || d.Hidden != tt.hidden {
			t.Errorf("%s %s of %s: %+v", tt.q.Spec.Name, tt.q.Params, tt.q.Caller.Principal, d)
		}
	}
	if d := (&Policy{}).Decide(call("fs", "read", `{}`)); d.Effect != deny || !d.Hidden {
		t.Errorf("the zero policy: %+v", d)
	}
}

// denyBeatsAllow: the order of rules is theirs who write them, and so a denial that comes first holds, whatever
// follows it in whatever order; and among rules of one effect the order does not matter.
func denyBeatsAllow(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("POLICY_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("POLICY_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	allows := []drawbridge.Rule{
		{Effect: allow}, {Effect: allow, Tools: []string{"*"}}, {Effect: allow, Servers: []string{"fs"}},
		{Effect: allow, Callers: []string{"ada"}},
		{Effect: allow, Args: is("x", `1`)}, {Effect: ask, Paths: []string{"/**"}},
		{Effect: allow, Kinds: []string{"author"}},
	}
	denials := []drawbridge.Rule{
		{Effect: deny, Tools: []string{"drop_*"}}, {Effect: deny, Servers: []string{"web"}},
		{Effect: deny, Args: is("force", `true`)},
		{Effect: deny, Paths: []string{"/etc/**"}}, {Effect: deny, Callers: []string{"bob"}},
	}
	questions := []Request{
		call("fs", "drop_table", `{"x":1}`), call("web", "get", `{}`), call("git", "push", `{"force":true}`),
		call("fs", "read", `{"path":"/etc/x"}`),
	}
	fine := call("fs", "read", `{"path":"/home/x","x":1}`)
	p := compiled(t, allow, slices.Concat(denials, allows)...)
	first, then := p.rules[:len(denials)], p.rules[len(denials):]
	for range 1000 {
		r.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
		r.Shuffle(len(then), func(i, j int) { then[i], then[j] = then[j], then[i] })
		p.targets.all = nil // rules stay as they are but here
		for _, q := range questions {
			if d := p.Decide(q); d.Effect != deny || d.Rule > len(denials) {
				t.Fatalf("%s %s: %+v", q.Spec.Name, q.Params, d)
			}
		}
		if d := p.Decide(fine); d.Effect == deny {
			t.Fatalf("%s %s: %+v", fine.Spec.Name, fine.Params, d)
		}
	}
}

// whatFailsIsDenied: an expression that fails, costs too much or looks at what is not there denies, in whichever rule,
// and so do arguments that cannot be read.
func whatFailsIsDenied(t *testing.T) {
	for _, tt := range []struct{ when, arguments string }{
		{`args.x == 1`, `{}`},
		{`args.x.y.z`, `{"x":{}}`},
		{`args.x`, `{"x":"no boolean"}`},
		{`args.x > 1`, `{"x":"text"}`},
		{`1 / args.x == 1`, `{"x":0}`},
		{`annotations.none`, `{}`},
		{`args.l.all(a, args.l.all(b, a + b > 0))`, `{"l":[` + manyNumbers(200) + `]}`},
		{`has(args.x)`, `{"x":1,"x":2}`},
		{`has(args.x)`, `[]`},
		{`has(args.x)`, `{"x":`},
	} {
		for _, effect := range []drawbridge.Effect{allow, ask, deny} {
			d := compiled(t, allow, drawbridge.Rule{Effect: effect, When: tt.when}).Decide(call("fs",
				"x", tt.arguments))
			if d.Effect != deny || d.Rule != 1 {
				t.Errorf("%s of %.40s, in a rule that says %s: %+v", tt.when, tt.arguments, effect, d)
			}
		}
	}
}

func manyNumbers(n int) string {
	text := "1"
	for range n {
		text += ",1"
	}
	return text
}

// byWhatACallWouldTouch: a tool may do more than its name says, and so rules look at the paths in what it is given,
// however they are written, and at arguments that a program would take for options.
func byWhatACallWouldTouch(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, Paths: []string{"~/.ssh/**", "/etc/**"}},
		drawbridge.Rule{Effect: deny, ArgsMatch: `:"-`})
	for arguments, want := range map[string]drawbridge.Effect{
		`{"repo_path":"/home/ada/.ssh"}`:              deny,
		`{"path":"/tmp/../etc/shadow"}`:               deny,
		`{"destination":"file:///etc/cron.d/x"}`:      deny,
		`{"command":"git -C /etc log"}`:               deny,
		`{"files":["a",["/etc/x"]]}`:                  deny,
		`{"branch":"--upload-pack=touch /tmp/x"}`:     deny,
		`{"branch":"-o", "path":"/home/ada/src/x"}`:   deny,
		`{"branch":"fix-1","path":"/home/ada/src"}`:   allow,
		`{"text":"a sentence about -o and /etc/x."}`:  deny,
		`{"text":"a sentence about -o and/or etc/x"}`: allow,
	} {
		if d := p.Decide(call("git", "git_log", arguments)); d.Effect != want {
			t.Errorf("%s: %+v, want %s", arguments, d, want)
		}
	}
}
