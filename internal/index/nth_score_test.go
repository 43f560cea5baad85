package index

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNth holds that so many scores reach what nth gives, and that not many more do.
func TestNth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		scores := make([]float64, 1+r.IntN(300))
		for i := range scores {
			scores[i] = r.Float64()
		}
		scores[0] = 1
		sorted := slices.Sorted(slices.Values(scores))
		for _, most := range []int{1, 2, 20, len(scores), len(scores) + 1} {
			got, want := nthScore(scores, most), 0.0
			if most <= len(sorted) {
				want = sorted[len(sorted)-most]
			}
			if got > want || got < want-1.0/scoreSteps {
				t.Fatalf("%d of %d reach %v, nth says %v", most, len(scores), want, got)
			}
		}
	}
}
