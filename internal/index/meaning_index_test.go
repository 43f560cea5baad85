package index

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNearest holds the choice that is made while rows are gone through against putting all of them in order, also
// where many lie as near as each other.
func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	vector := func(kinds int) *[EncoderDims]float32 {
		var v [EncoderDims]float32
		other := rand.New(rand.NewPCG(uint64(r.IntN(kinds)), 1))
		for i := range v {
			v[i] = other.Float32() - 0.3
		}
		return &v
	}
	for _, tt := range []struct{ rows, kinds, most int }{{1, 1, 5}, {300, 1 << 30, 10}, {300, 20, 10}, {300, 1, 10},
		{50, 40, 50}, {50, 40, 60}} {
		x := newMeaningIndex(false)
		for i := range tt.rows {
			x.ids, x.rows = append(x.ids, fmt.Sprint(i*7919%tt.rows)), append(x.rows, packVector(vector(tt.kinds)))
		}
		s := queryVectors{packQuery(vector(1 << 30)), packQuery(vector(1 << 30))}
		want := make([]int, tt.rows)
		for i := range want {
			want[i] = i
		}
		slices.SortFunc(want, func(a, b int) int {
			return cmp.Or(cmp.Compare(s.bestCosine(&x.rows[b]), s.bestCosine(&x.rows[a])),
				cmp.Compare(x.ids[a], x.ids[b]))
		})
		want = want[:min(len(want), tt.most)]
		got := x.nearest(s, tt.most)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", tt, got, want)
		}
	}
}
