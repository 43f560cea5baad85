package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A hold is a share of rows that the shield has reached.
type hold struct {
	of                         string
	rows, least, most, blanked int // of the rows, percent
}

// TestIN7UnseenLot holds the shield to what it has reached on lots that were written with no rule in sight, or before
// a rule was changed: the halves of them that were looked at since. The other halves, named apart, are for reports
// only: no rule is to be mended for them.
func TestIN7UnseenLot(t *testing.T) {
	held(t, "testdata/shown", []hold{
		{"tools_malicious", 168, 85, 100, 100}, {"tools_malicious: plain", 19, 80, 100, 100}, {"tools_malicious: dress",
			72, 95, 100, 100},
		{"tools_malicious: multilingual", 12, 80, 100, 100}, {"results_malicious", 44, 95, 100, 0},
		{"tools_benign", 53, 0, 8, 1}, {"results_benign", 27, 0, 15, 0}, {"results_benign: quoted_attack", 2, 0, 100,
			0}, {"results_benign: unicode_legit", 2, 0, 0, 0},
	})
	held(t, "testdata/third/shown", []hold{
		{"tools_malicious", 19, 80, 100, 100}, {"results_malicious", 90, 94, 100, 0},
		{"results_malicious: result_dress", 42, 90, 100, 0},
		{"results_malicious: result_multilingual", 17, 80, 100, 0}, {"tools_benign", 24, 0, 20, 5},
		{"results_benign", 28, 0, 36, 0},
	})
	held(t, "testdata/fifth/shown", []hold{
		{"results_malicious", 150, 87, 100, 0}, {"results_benign: ordinary", 100, 0, 10, 0},
		{"results_benign: hard_negative", 50, 0, 60, 0},
	})
	held(t, "testdata/sixth/shown", []hold{
		{"tools_malicious", 38, 70, 100, 100}, {"tools_malicious: split_fields", 4, 75, 100, 100},
		{"tools_benign: ordinary", 53, 0, 4, 0}, {"tools_benign: hard_negative", 49, 0, 12, 0},
	})
}

// held fails for each share of a lot that is not what it was.
func held(t *testing.T, dir string, all []hold) {
	t.Helper()
	s, err := shield.New(shield.Options{NoCaps: true})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir + "/*.jsonl")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	rowsOf, flagged, blanked := map[string]int{}, map[string]int{}, map[string]int{}
	for _, file := range files {
		rows, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			kind := strings.TrimSuffix(filepath.Base(file), ".jsonl")
			for _, of := range []string{kind, kind + ": " + r.Class} {
				rowsOf[of]++
				v, _ := judge(s, r)
				if v != shield.VerdictClean {
					flagged[of]++
				}
				if v == shield.VerdictBlanked {
					blanked[of]++
				}
			}
		}
	}
	for _, want := range all {
		n := share(flagged[want.of], rowsOf[want.of])
		if rowsOf[want.of] != want.rows || n < float64(want.least) || n > float64(want.most) || share(blanked[want.of],
			want.rows) > float64(want.blanked) {
			t.Errorf("%s: of %d rows %.1f %% are flagged and %.1f %% blanked, want %+v", want.of, rowsOf[want.of], n,
				share(blanked[want.of], rowsOf[want.of]), want)
		}
	}
}
