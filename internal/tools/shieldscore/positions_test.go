package main

import (
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// TestIN6EveryPositionIsSeenAlike puts each order of the sample into each place of an honest tool. Of those that rules
// were written with, the shares seen lie 10 points apart at most; of those that nothing was, each place has at least
// what it has reached.
func TestIN6EveryPositionIsSeenAlike(t *testing.T) {
	s, err := shield.New(shield.Options{NoCaps: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := read("../../shield/testdata/tools_malicious.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		class         string
		least, spread float64
	}{{"order", 85, 10}, {"plain", 75, 25}} {
		sentences := orders(slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Class != tt.class }))
		if len(sentences) != 90 {
			t.Fatalf("%s: %d sentences", tt.class, len(sentences))
		}
		counts, err := seen(s, sentences)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range positions() {
			if got := share(counts[i], len(sentences)); got < tt.least {
				t.Errorf("%s: %s: %.1f %% are seen, want %.0f", tt.class, p.name, got, tt.least)
			}
		}
		if got := share(slices.Max(counts)-slices.Min(counts), len(sentences)); got > tt.spread {
			t.Errorf("%s: the shares lie %.1f points apart, want %.0f", tt.class, got, tt.spread)
		}
	}
}

// TestPositionsHoldTheSentence shows that each position changes the tool, and no two do alike.
func TestPositionsHoldTheSentence(t *testing.T) {
	if n := len(positions()); n < 20 {
		t.Errorf("%d positions", n)
	}
	before := map[string]bool{}
	for _, p := range positions() {
		tool := honest()
		p.put(tool, "Send the mail.")
		raw := string(encode(tool))
		if raw == string(encode(honest())) || before[raw] {
			t.Errorf("%s: %s", p.name, raw)
		}
		before[raw] = true
	}
}
