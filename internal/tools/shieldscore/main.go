// Command shieldscore measures the shield on labelled rows: go run ./internal/tools/shieldscore -data DIR.
//
// For each class of rows it prints the share of rows that were flagged or blanked, and separate numbers for rows from
// public sources. The classes include those of honest rows. The rows are in the files tools_*.jsonl and results_*.jsonl
// in DIR. Their texts may contain attacks; the command only inspects them.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

type row struct {
	ID         string          `json:"id"`
	Label      string          `json:"label"`
	Class      string          `json:"class"`
	Tier       string          `json:"tier"`
	Source     string          `json:"source"`
	Provenance string          `json:"provenance"`
	Transform  string          `json:"transform"`
	Tool       json.RawMessage `json:"tool"`
	Text       string          `json:"text"`
	Before     json.RawMessage `json:"before"`
	After      json.RawMessage `json:"after"`
	Expected   string          `json:"expected_risk"`
}

func main() {
	data := flag.String("data", "shield/testdata", "the directory of the rows")
	misses := flag.String("show", "", "a class whose rows are shown with their findings, or \"missed\" or \"alarms\"")
	weights := flag.String("weights", "", "a file with weights of definitions in place of the built-in ones")
	flag.Parse()
	if err := run(*data, *misses, *weights); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, show, weights string) error {
	o := shield.Options{NoCaps: true}
	if weights != "" {
		table, err := os.ReadFile(weights)
		if err != nil {
			return err
		}
		o.DefinitionWeights = table
	}
	s, err := shield.New(o)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*s_*.jsonl"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.Contains(file, "drift") {
			continue
		}
		rows, err := read(file)
		if err != nil {
			return err
		}
		report(s, filepath.Base(file), rows, show)
		for _, class := range [][]string{{"plain"}, {"order", "title_field", "annotations_title", "schema_comment"}} {
			some := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !slices.Contains(class, r.Class) })
			if err := spread(s, filepath.Base(file), some); err != nil {
				return err
			}
		}
	}
	return drift(s, filepath.Join(dir, "tool_drift_pairs.jsonl"), show)
}

// drift prints the results for pairs of definitions before and after a change. For each class and expected risk, it
// prints the share of pairs that require a person's approval.
func drift(s *shield.Shield, file, show string) error {
	rows, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	all, asked, high := map[string]int{}, map[string]int{}, map[string]int{}
	for _, r := range rows {
		c, err := s.CompareDefinitions(r.Before, r.After)
		if err != nil {
			return fmt.Errorf("compare %s: %w", r.ID, err)
		}
		key := fmt.Sprintf("%-28s expected %-6s", r.Class, r.Expected)
		all[key]++
		if c.NeedsApproval {
			asked[key]++
		}
		if c.Risk == shield.RiskHigh {
			high[key]++
		}
		if show == r.Class {
			fmt.Println(r.ID, c.Risk, c.Changes, c.Reasons)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Printf("%-18s %s %4d  asked %5.1f %%  high %5.1f %%\n", "pairs", key, all[key], share(asked[key], all[key]),
			share(high[key], all[key]))
	}
	return nil
}

func read(file string) (rows []row, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		rows = append(rows, r)
	}
	return rows, lines.Err()
}

// A tally counts the rows of a class.
type tally struct{ all, flagged, blanked, public, publicFlagged int }

func (t *tally) add(r row, v shield.CheckVerdict) {
	t.all++
	hit := v != shield.VerdictClean
	if hit {
		t.flagged++
	}
	if v == shield.VerdictBlanked {
		t.blanked++
	}
	if r.Provenance == "public" {
		t.public++
		if hit {
			t.publicFlagged++
		}
	}
}

func report(s *shield.Shield, name string, rows []row, show string) {
	classes := map[string]*tally{}
	tiers := map[string][]string{}
	begun := time.Now()
	for _, r := range rows {
		v, reasons := judge(s, r)
		if classes[r.Class] == nil {
			classes[r.Class] = &tally{}
			tiers[r.Tier] = append(tiers[r.Tier], r.Class)
		}
		classes[r.Class].add(r, v)
		missed := r.Label == "malicious" && v == shield.VerdictClean
		alarm := r.Label == "benign" && v != shield.VerdictClean
		if show == r.Class || show == "missed" && missed || show == "alarms" && alarm || show == "missed-"+
			r.Tier && missed {
			fmt.Printf("%s %s %s %s %s\n", r.ID, r.Class, r.Transform, v, r.Source)
			for _, why := range reasons {
				fmt.Printf("    %s %s %s: %s\n", why.Path, why.Action, why.Rule, why.Excerpt)
			}
		}
	}
	took := time.Since(begun)
	for _, tier := range slices.Sorted(maps.Keys(tiers)) {
		print(name, tier, tiers[tier], classes)
	}
	fmt.Printf("%-18s %d rows, %.0f a second on one core\n\n", name, len(rows), float64(len(rows))/took.Seconds())
}

func print(name, tier string, classes []string, by map[string]*tally) {
	slices.Sort(classes)
	macro, macroPublic, n := 0.0, 0.0, 0.0
	var sum tally
	for _, c := range classes {
		t := by[c]
		fmt.Printf("%-18s %-2s %-28s %4d  flagged %5.1f %%  blanked %5.1f %%", name, tier, c, t.all,
			share(t.flagged, t.all), share(t.blanked, t.all))
		if t.public > 0 && t.public < t.all || tier != "" && t.public > 0 {
			fmt.Printf("  public %d of %d", t.publicFlagged, t.public)
		}
		fmt.Println()
		macro += share(t.flagged, t.all)
		if t.public > 0 {
			macroPublic += share(t.publicFlagged, t.public)
			n++
		}
		sum.all += t.all
		sum.flagged += t.flagged
		sum.blanked += t.blanked
		sum.public += t.public
		sum.publicFlagged += t.publicFlagged
	}
	fmt.Printf("%-18s %-2s macro %.1f %%, public macro %.1f %%, overall %.2f %%, public %.2f %%, blanked %.2f %%\n",
		name, tier,
		macro/float64(len(classes)), macroPublic/max(n, 1), share(sum.flagged, sum.all), share(sum.publicFlagged,
			sum.public), share(sum.blanked, sum.all))
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

func judge(s *shield.Shield, r row) (shield.CheckVerdict, []shield.Finding) {
	if r.Tool == nil {
		_, v, reasons := s.CheckResultText(r.Text)
		return v, reasons
	}
	rep, err := s.CheckDefinition(r.Tool)
	if err != nil {
		return shield.VerdictHeld, nil
	}
	return rep.Verdict, rep.Reasons
}
