package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// familyNames maps the short source names in rows that were derived from other rows to the full names in those rows.
var familyNames = map[string]string{"MSB": "dongsenzhang/MSB", "cisco": "cisco-ai-defense/mcp-scanner",
	"DVMCP": "harishsg993010/damn-vulnerable-MCP-server", "mcpproxy": "smart-mcp-proxy/mcpproxy-go",
	"attack-labs": "aminrj-labs/mcp-attack-labs", "AgentDojo": "ethz-spylab/agentdojo"}

// sourcesOf returns the sources of a labelled row. own is the source of the injected instruction, or of an honest row.
// carrier is the source of the honest tool into which the instruction was inserted, or "".
func sourcesOf(source string) (own, carrier string) {
	for i, part := range strings.Split(source, ";") {
		part = strings.TrimPrefix(part, "derived:")
		if name, ok := strings.CutPrefix(part, "carrier="); ok {
			carrier = name
		} else if i == 0 {
			own, _, _ = strings.Cut(strings.TrimPrefix(part, "payload="), " (")
		}
	}
	if full := familyNames[own]; full != "" {
		own = full
	}
	return own, carrier
}

// A tally counts rows, and among them the flagged or blanked rows.
type tally struct{ all, flagged int }

func (t *tally) percent() float64 { return 100 * float64(t.flagged) / float64(max(t.all, 1)) }

// count adds a row to the tally with the given key. flagged reports whether the row was flagged or blanked.
func count(all map[string]*tally, key string, flagged bool) {
	if all[key] == nil {
		all[key] = &tally{}
	}
	all[key].all++
	if flagged {
		all[key].flagged++
	}
}

// leaveOneOut checks the definitions of each source with weights that were learned from the rows of all other sources.
// It prints the share of flagged rows by source and by class. The rules and weight limits of the shield are the same
// for all sources.
func (l *lesson) leaveOneOut() error {
	bySource, byClass := map[string]*tally{}, map[string]*tally{}
	sources := map[string][]row{}
	for _, r := range l.rows {
		sources[r.own] = append(sources[r.own], r)
	}
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		m := learn(l.texts, func(t *text) bool { return t.own == source || t.carrier == source })
		s, err := shield.New(shield.Options{NoCaps: true, DefinitionWeights: m.table(shield.DefinitionSlots)})
		if err != nil {
			return err
		}
		for _, r := range sources[source] {
			rep, err := s.CheckDefinition(r.Tool)
			if err != nil {
				return fmt.Errorf("judge %s: %w", r.ID, err)
			}
			flagged := rep.Verdict != shield.VerdictClean
			count(bySource, fmt.Sprintf("%-9s %s", r.Label, source), flagged)
			count(byClass, fmt.Sprintf("%-9s %-1s %s", r.Label, r.Tier, r.Class), flagged)
		}
	}
	printTallies("one source out, by source", bySource)
	printTallies("one source out, by class", byClass)
	for _, of := range []string{"malicious A", "malicious B", "benign"} {
		var macro float64
		var sum tally
		n := 0
		for key, t := range byClass {
			if strings.HasPrefix(key, of) {
				n++
				macro += t.percent()
				sum.all += t.all
				sum.flagged += t.flagged
			}
		}
		if n > 0 {
			fmt.Printf("one source out: %-12s mean over classes %.1f %%, all %d rows %.2f %%\n", of, macro/float64(n),
				sum.all, sum.percent())
		}
	}
	return nil
}

func printTallies(title string, all map[string]*tally) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Printf("%s: %-60s %4d rows, flagged %5.1f %%\n", title, key, all[key].all, all[key].percent())
	}
}
