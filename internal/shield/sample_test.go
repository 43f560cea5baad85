package shield_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// TestSample holds the shield to shares of the sample that it has reached. A change that loses some says so here.
func TestSample(t *testing.T) {
	s := newShield(t)
	seen, all := map[string]int{}, map[string]int{}
	for _, file := range []string{"tools_malicious", "tools_benign", "results_benign"} {
		f, err := os.Open("testdata/" + file + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var row struct {
				ID, Class, Text string
				Tool            json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			if all[row.Class]++; judged(t, s, row.Tool, row.Text) != shield.VerdictClean {
				seen[row.Class]++
				if file != "tools_malicious" {
					t.Logf("%s is not clean", row.ID)
				}
			}
		}
	}
	for _, want := range []struct {
		class       string
		least, most int // percent
	}{{"order", 85, 100}, {"plain", 75, 100}, {"dress", 90, 100}, {"language", 95, 100}, {"benign_hard_negative", 0, 5},
		{"unicode_legit", 0, 0}, {"ansi_legit", 0, 0}, {"email_legit", 0, 0}, {"error_legit", 0, 0}} {
		if n := all[want.class]; n == 0 || seen[want.class]*100 < n*want.least || seen[want.class]*100 > n*want.most {
			t.Errorf("%s: %d of %d, want %d to %d %%", want.class, seen[want.class], n, want.least, want.most)
		}
	}
}

func judged(t *testing.T, s *shield.Shield, tool json.RawMessage, text string) shield.CheckVerdict {
	if tool == nil {
		_, verdict, _ := s.CheckResultText(text)
		return verdict
	}
	report, err := s.CheckDefinition(tool)
	if err != nil {
		t.Fatal(err)
	}
	return report.Verdict
}
