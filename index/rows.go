package index

import (
	"math"

	"github.com/drawbridge-mcp/drawbridge/index/encoder"
)

// A row is a vector in whole numbers from -half to half, so that the cosine of two is the same on every machine. Four of them
// stand in a word, each half higher than it is, in 16 bits of their own: one multiplication of two words adds up the products
// of four numbers, in the highest 16 bits.
type row struct {
	packed [encoder.Dims / lanes]uint64
	total  int64   // of the numbers
	length float64 // 0 is a vector of nothing
}

const (
	lanes    = 4
	laneBits = 16
	half     = 63
)

// newRow rounds a vector to a row.
func newRow(v *[encoder.Dims]float32) row { return pack(v, false) }

// asked is a row that others are compared with: its numbers stand in their words the other way round.
type asked row

func newAsked(v *[encoder.Dims]float32) asked { return asked(pack(v, true)) }

func pack(v *[encoder.Dims]float32, reverse bool) row {
	var most float64
	for _, x := range v {
		most = max(most, math.Abs(float64(x)))
	}
	var r row
	if most == 0 {
		return r
	}
	var square int64
	for i, x := range v {
		n := int64(math.RoundToEven(float64(x) / most * half))
		r.total += n
		square += n * n
		lane := i % lanes
		if reverse {
			lane = lanes - 1 - lane
		}
		r.packed[i/lanes] |= uint64(n+half) << (lane * laneBits)
	}
	r.length = math.Sqrt(float64(square))
	return r
}

// cosine is 0 if one of the two is of nothing.
func (q *asked) cosine(r *row) float64 {
	if q.length == 0 || r.length == 0 {
		return 0
	}
	var sum uint64
	for i := range q.packed {
		sum += q.packed[i] * r.packed[i] >> (laneBits * (lanes - 1))
	}
	product := int64(sum) - half*(q.total+r.total) - half*half*encoder.Dims
	return float64(product) / (q.length * r.length)
}
