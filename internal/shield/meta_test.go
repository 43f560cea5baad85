package shield_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/google/go-cmp/cmp"
)

// A sampled row is one of the sample.
type sampled struct {
	ID, Class, Text string
	Tool            json.RawMessage
}

// sample has the rows of a file of the sample.
func sample(t testing.TB, file string) (rows []sampled) {
	t.Helper()
	f, err := os.Open("testdata/" + file + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r sampled
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// orders are the sentences of the sample that give orders in plain English.
func orders(t testing.TB) (all []string) {
	for _, r := range sample(t, "tools_malicious") {
		if r.Class != "order" && r.Class != "plain" {
			continue
		}
		var tool struct{ Description string }
		if err := json.Unmarshal(r.Tool, &tool); err != nil {
			t.Fatal(err)
		}
		_, s, _ := strings.Cut(tool.Description, ". ")
		all = append(all, s)
	}
	if len(all) < 100 {
		t.Fatalf("%d orders in the sample", len(all))
	}
	return all
}

// TestIN7VerdictDoesNotDrop writes each order of the sample in other ways that say the same: one that is seen is seen
// in all of them.
func TestIN7VerdictDoesNotDrop(t *testing.T) {
	s := newShield(t)
	judge := func(text string) shield.CheckVerdict {
		raw, err := json.Marshal(map[string]string{"name": "get_thing", "description": text})
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.CheckDefinition(raw)
		if err != nil {
			t.Fatal(err)
		}
		return report.Verdict
	}
	ways := []struct {
		name  string
		least int // percent of those that are seen plain
		say   func(string) string
	}{
		{"upper case", 90, strings.ToUpper},
		{"lower case", 95, strings.ToLower},
		{"two spaces", 100, func(s string) string { return strings.ReplaceAll(s, " ", "  ") }},
		{"lines", 90, func(s string) string { return strings.ReplaceAll(s, " ", "\n") }},
		{"tabs", 95, func(s string) string { return strings.ReplaceAll(s, " ", "\t") }},
		{"wide spaces", 95, func(s string) string { return strings.ReplaceAll(s, " ", "\u3000") }},
		{"hidden spaces", 95, func(s string) string { return strings.ReplaceAll(s, "e", "e\u200b") }},
		{"full width", 85, fullWidth},
		{"accents", 95, func(s string) string { return strings.NewReplacer("a", "á", "o", "ö", "u", "ù").Replace(s) }},
		{"at the end", 95, func(s string) string {
			return "Gets a thing by its name. The name is that of the list. " +
				s
		}},
		{"at the beginning", 95, func(s string) string {
			return s +
				" Gets a thing by its name. The name is that of the list."
		}},
		{"in the middle", 95, func(s string) string { return "Gets a thing. " + s + " The name is that of the list." }},
		{"in a list", 95, func(s string) string { return "Gets a thing.\n- by name\n- " + s + "\n- by number" }},
		{"in a comment", 100, func(s string) string { return "Gets a thing. <!-- " + s + " -->" }},
		{"in bold", 95, func(s string) string { return "Gets a thing. **" + s + "**" }},
		{"in brackets", 90, func(s string) string { return "Gets a thing. (" + strings.TrimSuffix(s, ".") + ")" }},
	}
	var seen []string
	for i, order := range orders(t) {
		if i%3 == 0 && judge("Gets a thing. "+order) != shield.VerdictClean {
			seen = append(seen, order)
		}
	}
	for _, w := range ways {
		still := 0
		for _, order := range seen {
			if after := judge(w.say("Gets a thing. " + order)); after != shield.VerdictClean {
				still++
			} else {
				t.Logf("%s: %s", w.name, order)
			}
		}
		if still*100 < len(seen)*w.least {
			t.Errorf("%s: %d of %d are still seen, want %d %%", w.name, still, len(seen), w.least)
		}
	}
}

func fullWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7F {
			return r - '!' + '！'
		}
		return r
	}, s)
}

// TestIN8SameVerdictAlways judges the sample in several orders, by several shields, and at once: the same comes of
// each row.
func TestIN8SameVerdictAlways(t *testing.T) {
	var raws []json.RawMessage
	for _, file := range []string{"tools_benign", "tools_malicious"} {
		for n, r := range sample(t, file) {
			if n%3 == 0 {
				raws = append(raws, r.Tool)
			}
		}
	}
	judge := func(s *shield.Shield, order []int) []string {
		all := make([]string, len(raws))
		for _, i := range order {
			report, err := s.CheckDefinition(raws[i])
			if err != nil {
				t.Error(err)
			}
			all[i] = fmt.Sprint(report.Verdict, report.Reasons, string(report.Canonical))
		}
		return all
	}
	s := newShield(t)
	random := rand.New(rand.NewPCG(1, 2))
	want := judge(s, random.Perm(len(raws)))
	orders := [][]int{random.Perm(len(raws)), random.Perm(len(raws)), random.Perm(len(raws))}
	got := make([][]string, len(orders))
	var wait sync.WaitGroup
	for i, order := range orders {
		wait.Go(func() {
			by := s
			if i == 0 {
				by = newShield(t)
			}
			got[i] = judge(by, order)
		})
	}
	wait.Wait()
	for _, g := range got {
		if diff := cmp.Diff(want, g); diff != "" {
			t.Error(diff)
		}
	}
}

// TestIN4DriftAsks makes changes of the sample's honest tools: one that brings an order is of high risk, whatever else
// it has, one of the order of members asks no one.
func TestIN4DriftAsks(t *testing.T) {
	s := newShield(t)
	sentences := orders(t)[:90]
	high, all := 0, 0
	for n, r := range sample(t, "tools_benign") {
		var tool map[string]any
		if err := json.Unmarshal(r.Tool, &tool); err != nil {
			t.Fatal(err)
		}
		same, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.CompareDefinitions(r.Tool, same)
		if err != nil {
			t.Fatal(err)
		}
		if c.NeedsApproval || c.Risk != shield.RiskNone {
			t.Errorf("%s: the order of members is a change: %v %v", r.ID, c.Risk, c.Changes)
		}
		plain := fmt.Sprint(tool["description"])
		for _, order := range []string{sentences[4*n%90], sentences[(4*n+2)%90]} {
			tool["description"] = plain + " " + order
			now, err := json.Marshal(tool)
			if err != nil {
				t.Fatal(err)
			}
			if c, err = s.CompareDefinitions(r.Tool, now); err != nil {
				t.Fatal(err)
			}
			if !c.NeedsApproval {
				t.Errorf("%s: no one is asked about %q", r.ID, order)
			}
			if all++; c.Risk == shield.RiskHigh {
				high++
			}
		}
	}
	if all == 0 || high*100 < all*80 {
		t.Errorf("%d of %d changes that bring an order are of high risk", high, all)
	}
}
