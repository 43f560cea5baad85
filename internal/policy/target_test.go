package policy

import (
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestWhatWasMetIsJudgedAlike asks about cards that were met before, with all rules and with those that are about
// them; more cards than are remembered, and one that is trusted otherwise today.
func TestWhatWasMetIsJudgedAlike(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, Servers: []string{"s1"}, Tools: []string{"t*"}}, drawbridge.Rule{Effect: allow,
			Trust: []string{"trusted"}},
		drawbridge.Rule{Effect: deny, Tools: []string{"s2__t2", "?3"}}, drawbridge.Rule{Effect: deny,
			Prompts: []string{"t4"}},
		drawbridge.Rule{Effect: drawbridge.Ask, Callers: []string{"bob"}}, drawbridge.Rule{Effect: deny,
			Tools: []string{"t5"}, When: `has(args.x)`})
	for round := range 2 {
		for n := range maxCachedTargets/4 + 50 {
			for _, trust := range []string{"trusted", "untrusted"} {
				for _, kind := range []string{KindTool, KindPrompt} {
					q := call(fmt.Sprint("S", n%7), fmt.Sprint("t", n), `{"x":1}`)
					q.Kind, q.Trust, q.Spec.Name = kind, trust,
						drawbridge.CardName(fmt.Sprintf("s%d__%s", n%7, q.Spec.Tool))
					want, _ := p.Explain(q)
					if diff := cmp.Diff(want, p.Decide(q)); diff != "" {
						t.Fatalf("round %d, %s %s of a server that is %s: %s", round, kind, q.Spec.Name, trust, diff)
					}
					if got := p.IsHidden(&q.Caller, kind, &q.Spec, trust); got != want.Hidden {
						t.Fatalf("round %d, %s %s of a server that is %s is hidden: %v, and calls say %v", round, kind,
							q.Spec.Name, trust, got, want.Hidden)
					}
				}
			}
		}
	}
	if n := len(p.targets.all); n > maxCachedTargets {
		t.Errorf("%d things are remembered", n)
	}
}

// TestWhatIsHiddenGoesByTodaysDefinition has a card change under its name, and callers who differ.
func TestWhatIsHiddenGoesByTodaysDefinition(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, When: `annotations.destructiveHint == true`}, drawbridge.Rule{Effect: deny,
			Tools: []string{"t2"}, Callers: []string{"bob"}})
	hidden := func(tool, who, annotations string) bool {
		spec := call("s", tool, `{}`).Spec
		spec.Definition = []byte(`{"name":"` + tool + `","annotations":{` + annotations + `}}`)
		return p.IsHidden(&drawbridge.Caller{Kind: drawbridge.External, Principal: who}, KindTool, &spec, "trusted")
	}
	const safe, not = `"destructiveHint":false`, `"destructiveHint":true`
	for i, tt := range []struct {
		tool, who, annotations string
		want                   bool
	}{{"t1", "ada", safe, false}, {"t1", "ada", not, true}, {"t1", "ada", safe, false}, {"t2", "ada", safe, false},
		{"t2", "bob", safe, true}, {"t2", "ada", safe, false}} {
		if got := hidden(tt.tool, tt.who, tt.annotations); got != tt.want {
			t.Errorf("%d: %s for %s with %s: hidden is %v", i, tt.tool, tt.who, tt.annotations, got)
		}
	}
}

// TestThingsOfOneName has what only its name has in common.
func TestThingsOfOneName(t *testing.T) {
	p := compiled(t, allow, drawbridge.Rule{Effect: deny, Tools: []string{"t1"}}, drawbridge.Rule{Effect: deny,
		Servers: []string{"s2"}},
		drawbridge.Rule{Effect: deny, Trust: []string{"sandboxed"}}, drawbridge.Rule{Effect: deny,
			Prompts: []string{"t3"}})
	for range 2 {
		for _, tt := range []struct {
			kind, server, tool, trust string
			want                      bool
		}{
			{KindTool, "s1", "t1", "trusted", true}, {KindTool, "s1", "t2", "trusted", false}, {KindTool, "s2", "t2",
				"trusted", true}, {KindTool, "s1", "t2", "sandboxed", true},
			{KindPrompt, "s1", "t3", "trusted", true}, {KindTool, "s1", "t3", "trusted", false},
			{KindPrompt, "s1", "t1", "trusted", false},
		} {
			spec := drawbridge.Spec{Server: drawbridge.ServerID(tt.server), Tool: tt.tool, Name: "one"}
			if got := p.IsHidden(&drawbridge.Caller{}, tt.kind, &spec, tt.trust); got != tt.want {
				t.Errorf("%+v: hidden is %v", tt, got)
			}
		}
	}
}

// TestAQuestionStaysOnTheStack asks about a card that was met before, by rules that look at names only, and at the
// caller.
func TestAQuestionStaysOnTheStack(t *testing.T) {
	p := compiled(t, allow, drawbridge.Rule{Effect: deny, Servers: []string{"other"}}, drawbridge.Rule{Effect: deny,
		Callers: []string{"eve"}})
	q := call("fs", "read", `{"path":"/x"}`)
	if n := testing.AllocsPerRun(100, func() {
		if p.Decide(q).Effect != allow || p.IsHidden(&q.Caller, q.Kind, &q.Spec, q.Trust) {
			t.Error("it is denied")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
