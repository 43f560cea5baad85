package policy

import (
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestWhatWasMetIsJudgedAlike asks about cards that were met before, with all rules and with those that are about them; more
// cards than are remembered, and one that is trusted otherwise today.
func TestWhatWasMetIsJudgedAlike(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, Servers: []string{"s1"}, Tools: []string{"t*"}}, drawbridge.Rule{Effect: allow, Trust: []string{"trusted"}},
		drawbridge.Rule{Effect: deny, Tools: []string{"s2__t2", "?3"}}, drawbridge.Rule{Effect: deny, Prompts: []string{"t4"}},
		drawbridge.Rule{Effect: drawbridge.Ask, Callers: []string{"bob"}}, drawbridge.Rule{Effect: deny, Tools: []string{"t5"}, When: `has(args.x)`})
	for round := range 2 {
		for n := range mostThings/4 + 50 {
			for _, trust := range []string{"trusted", "untrusted"} {
				for _, kind := range []string{Tool, Prompt} {
					q := call(fmt.Sprint("S", n%7), fmt.Sprint("t", n), `{"x":1}`)
					q.Kind, q.Trust, q.Spec.Name = kind, trust, drawbridge.CardName(fmt.Sprintf("s%d__%s", n%7, q.Spec.Tool))
					want, _ := p.Explain(q)
					if diff := cmp.Diff(want, p.Decide(q)); diff != "" {
						t.Fatalf("round %d, %s %s of a server that is %s: %s", round, kind, q.Spec.Name, trust, diff)
					}
					if got := p.Hides(q.Caller, kind, q.Spec, trust); got != want.Hidden {
						t.Fatalf("round %d, %s %s of a server that is %s is hidden: %v, and calls say %v", round, kind, q.Spec.Name, trust, got, want.Hidden)
					}
				}
			}
		}
	}
	if n := len(p.things.all); n > mostThings {
		t.Errorf("%d things are remembered", n)
	}
}

// TestWhatIsHiddenGoesByTodaysDefinition has a card change under its name, and callers who differ.
func TestWhatIsHiddenGoesByTodaysDefinition(t *testing.T) {
	p := compiled(t, allow,
		drawbridge.Rule{Effect: deny, When: `annotations.destructiveHint == true`}, drawbridge.Rule{Effect: deny, Tools: []string{"t2"}, Callers: []string{"bob"}})
	hidden := func(tool, who, annotations string) bool {
		spec := call("s", tool, `{}`).Spec
		spec.Definition = []byte(`{"name":"` + tool + `","annotations":{` + annotations + `}}`)
		return p.Hides(drawbridge.Caller{Kind: drawbridge.External, Principal: who}, Tool, spec, "trusted")
	}
	const safe, not = `"destructiveHint":false`, `"destructiveHint":true`
	for i, tt := range []struct {
		tool, who, annotations string
		want                   bool
	}{{"t1", "ada", safe, false}, {"t1", "ada", not, true}, {"t1", "ada", safe, false}, {"t2", "ada", safe, false}, {"t2", "bob", safe, true}, {"t2", "ada", safe, false}} {
		if got := hidden(tt.tool, tt.who, tt.annotations); got != tt.want {
			t.Errorf("%d: %s for %s with %s: hidden is %v", i, tt.tool, tt.who, tt.annotations, got)
		}
	}
}
