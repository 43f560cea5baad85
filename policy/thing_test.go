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
				}
			}
		}
	}
	if n := len(p.things.all); n > mostThings {
		t.Errorf("%d things are remembered", n)
	}
}
