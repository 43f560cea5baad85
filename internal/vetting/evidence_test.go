package vetting_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEvidence(t *testing.T) {
	look := func(definition string) []trust.Event {
		l := drawbridge.Listing{Tools: []json.RawMessage{json.RawMessage(definition)}}
		return vetting.TrustEvidence(l, deck.VettedListing{
			Notes: []deck.VettingNote{
				{Kind: "tool", Name: "a", Action: "blanked", Why: "an order"}, {Kind: "tool", Name: "a",
					Action: "flagged", Why: "a key"},
				{Kind: "server", Action: "blanked", Why: "an order"}, {Kind: "prompt", Name: "p\x1b[2J",
					Action: "blanked", Why: "an order"},
				{Kind: "tool", Name: "x", Action: "cut"}, {Kind: "tool", Name: "x", Action: "flagged",
					Why: "an order, perhaps", Weak: true}, {Kind: "tool", Name: "x", Action: "stripped"},
				{Kind: "tool", Name: "a", Action: "held", Why: "it changed"},
				{Kind: "tool", Name: "sanitized_1", Action: "renamed", Why: "an order"},
			},
			Tools: []deck.VettedItem{{Original: json.RawMessage(`{"name":"u"}`), Code: "unexpected"},
				{Original: json.RawMessage(`{"name":"l"}`), Code: "locked"}},
		})
	}
	got := look(`{"name":"a","description":"one"}`)
	want := []trust.Event{
		{Kind: trust.DefinitionChanged, Count: 1, Why: `"tool a"`},
		{Kind: trust.TextSanitised, Count: 5, Why: `"tool a", "tool a", "server" and 2 more`},
		{Kind: trust.UnexpectedTool, Count: 1, Why: `"tool u"`},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(trust.Event{}, "Marks")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a := trust.EventHistory{}.WithEvents(got...)
	for definition, more := range map[string]int{`{ "description":"one", "name":"a" }`: 0,
		`{"name":"a","description":"two"}`: 1} {
		if n := len(a.WithEvents(look(definition)...).Events) - len(a.Events); n != more {
			t.Errorf("%s is %d events more, want %d", definition, n, more)
		}
	}
	if got := vetting.TrustEvidence(drawbridge.Listing{},
		deck.VettedListing{Tools: []deck.VettedItem{{Original: json.RawMessage(`{"name":"x"}`)}}}); got != nil {
		t.Errorf("an honest listing is %v", got)
	}
}

// TestEvidenceOfVeryMuch has a server change very many prompts, again and again: what is kept of them stays small, and
// the same list counts once.
func TestEvidenceOfVeryMuch(t *testing.T) {
	const many = 1000
	look := func(version int) []trust.Event { return vetting.TrustEvidence(changedPrompts(many, version)) }
	a := trust.EventHistory{}.WithEvents(look(0)...)
	if again := a.WithEvents(look(0)...); len(again.Events) != len(a.Events) {
		t.Errorf("the same list is %d events more", len(again.Events)-len(a.Events))
	}
	for version := range 3 {
		a = a.WithEvents(look(version + 1)...)
	}
	text, err := a.Encode()
	if perEvent := len(text) / len(a.Events); err != nil || len(a.Events) != 4 || perEvent > 4096 {
		t.Errorf("%d events have %d bytes each, %v", len(a.Events), perEvent, err)
	}
}

// changedPrompts is a list of prompts, all of which are held since they changed.
func changedPrompts(many, version int) (l drawbridge.Listing, v deck.VettedListing) {
	text := strings.Repeat("x", 1000)
	for i := range many {
		name := fmt.Sprintf("p%d", i)
		l.Prompts = append(l.Prompts, fmt.Appendf(nil, `{"description":"%d %s","name":"%s"}`, version, text, name))
		v.Notes = append(v.Notes, deck.VettingNote{Kind: "prompt", Name: name, Action: "held",
			Why: "its definition changed"})
	}
	return l, v
}

// BenchmarkEvidence is to grow as the list does.
func BenchmarkEvidence(b *testing.B) {
	for _, many := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			l, v := changedPrompts(many, 0)
			for b.Loop() {
				vetting.TrustEvidence(l, v)
			}
		})
	}
}
