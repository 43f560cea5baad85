package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/shield"
)

// TestIN7UnseenLot holds the shield to what it has reached on a lot that was written with no rule in sight: the half of it that was
// looked at since. The other half, testdata/apart, is for reports only: no rule is to be mended for it.
func TestIN7UnseenLot(t *testing.T) {
	s, err := shield.New(shield.Options{Uncapped: true})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/shown/*.jsonl")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	all, flagged, blanked := map[string]int{}, map[string]int{}, map[string]int{}
	for _, file := range files {
		rows, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			kind := strings.TrimSuffix(filepath.Base(file), ".jsonl")
			for _, of := range []string{kind, kind + ": " + r.Class} {
				all[of]++
				v, _ := judge(s, r)
				if v != shield.Clean {
					flagged[of]++
				}
				if v == shield.Blanked {
					blanked[of]++
				}
			}
		}
	}
	for _, want := range []struct {
		of                         string
		rows, least, most, blanked int // of the rows, percent
	}{
		{"tools_malicious", 168, 85, 100, 100}, {"tools_malicious: plain", 19, 75, 100, 100}, {"tools_malicious: dress", 72, 95, 100, 100},
		{"tools_malicious: multilingual", 12, 80, 100, 100}, {"results_malicious", 44, 80, 100, 0},
		{"tools_benign", 53, 0, 8, 1}, {"results_benign", 27, 0, 12, 0}, {"results_benign: quoted_attack", 2, 0, 100, 0}, {"results_benign: unicode_legit", 2, 0, 0, 0},
	} {
		n := share(flagged[want.of], all[want.of])
		if all[want.of] != want.rows || n < float64(want.least) || n > float64(want.most) || share(blanked[want.of], want.rows) > float64(want.blanked) {
			t.Errorf("%s: of %d rows %.1f %% are flagged and %.1f %% blanked, want %+v", want.of, all[want.of], n, share(blanked[want.of], all[want.of]), want)
		}
	}
}
