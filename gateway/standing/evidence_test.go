package standing_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/standing"
	"github.com/drawbridge-mcp/drawbridge/trust"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEvidence(t *testing.T) {
	look := func(definition string) []trust.Event {
		l := drawbridge.Listing{Tools: []json.RawMessage{json.RawMessage(definition)}}
		return standing.Evidence(l, deck.Vetted{
			Notes: []deck.Note{
				{Kind: "tool", Name: "a", Did: "blanked", Why: "an order"}, {Kind: "tool", Name: "a", Did: "flagged", Why: "a key"},
				{Kind: "server", Did: "blanked", Why: "an order"}, {Kind: "prompt", Name: "p\x1b[2J", Did: "blanked", Why: "an order"},
				{Kind: "tool", Name: "x", Did: "cut"}, {Kind: "tool", Name: "x", Did: "flagged", Why: "an order, perhaps", Slight: true}, {Kind: "tool", Name: "x", Did: "stripped"}, {Kind: "tool", Name: "a", Did: "held", Why: "it changed"},
				{Kind: "tool", Name: "sanitized_1", Did: "renamed", Why: "an order"},
			},
			Tools: []deck.Shown{{Own: json.RawMessage(`{"name":"u"}`), Code: "unexpected"}, {Own: json.RawMessage(`{"name":"l"}`), Code: "locked"}},
		})
	}
	got := look(`{"name":"a","description":"one"}`)
	want := []trust.Event{
		{Kind: trust.Changed, Count: 1, Why: `"tool a"`},
		{Kind: trust.Sanitised, Count: 5, Why: `"tool a", "tool a", "server" and 2 more`},
		{Kind: trust.Unexpected, Count: 1, Why: `"tool u"`},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(trust.Event{}, "Marks")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a := trust.Account{}.With(got...)
	for definition, more := range map[string]int{`{ "description":"one", "name":"a" }`: 0, `{"name":"a","description":"two"}`: 1} {
		if n := len(a.With(look(definition)...).Events) - len(a.Events); n != more {
			t.Errorf("%s is %d events more, want %d", definition, n, more)
		}
	}
	if got := standing.Evidence(drawbridge.Listing{}, deck.Vetted{Tools: []deck.Shown{{Own: json.RawMessage(`{"name":"x"}`)}}}); got != nil {
		t.Errorf("an honest listing is %v", got)
	}
}

// TestEvidenceOfVeryMuch has a server change very many prompts, again and again: what is kept of them stays small, and the same list
// counts once.
func TestEvidenceOfVeryMuch(t *testing.T) {
	const many = 1000
	look := func(version int) []trust.Event { return standing.Evidence(changedPrompts(many, version)) }
	a := trust.Account{}.With(look(0)...)
	if again := a.With(look(0)...); len(again.Events) != len(a.Events) {
		t.Errorf("the same list is %d events more", len(again.Events)-len(a.Events))
	}
	for version := range 3 {
		a = a.With(look(version + 1)...)
	}
	text, err := a.Text()
	if perEvent := len(text) / len(a.Events); err != nil || len(a.Events) != 4 || perEvent > 4096 {
		t.Errorf("%d events have %d bytes each, %v", len(a.Events), perEvent, err)
	}
}

// changedPrompts is a list of prompts, all of which are held since they changed.
func changedPrompts(many, version int) (l drawbridge.Listing, v deck.Vetted) {
	text := strings.Repeat("x", 1000)
	for i := range many {
		name := fmt.Sprintf("p%d", i)
		l.Prompts = append(l.Prompts, fmt.Appendf(nil, `{"description":"%d %s","name":"%s"}`, version, text, name))
		v.Notes = append(v.Notes, deck.Note{Kind: "prompt", Name: name, Did: "held", Why: "its definition changed"})
	}
	return l, v
}

// BenchmarkEvidence is to grow as the list does.
func BenchmarkEvidence(b *testing.B) {
	for _, many := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			l, v := changedPrompts(many, 0)
			for b.Loop() {
				standing.Evidence(l, v)
			}
		})
	}
}
