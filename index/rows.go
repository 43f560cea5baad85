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
	per    float64 // one by the length of the vector; 0 is a vector of nothing
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
	r.per = 1 / math.Sqrt(float64(square))
	return r
}

// cosine is 0 if one of the two is of nothing.
func (q *asked) cosine(r *row) float64 {
	product := int64(sum(&q.packed, &r.packed)) - half*(q.total+r.total) - half*half*encoder.Dims
	return float64(product) * q.per * r.per
}

// sum adds up the products of two vectors' numbers, as they stand in their words, in two sums of which neither waits for the
// other: most of a question's time may be spent here.
func sum(q, r *[encoder.Dims / lanes]uint64) uint64 {
	const down = laneBits * (lanes - 1)
	var a, b uint64
	for i := 0; i < len(q); i += 2 {
		a += q[i] * r[i] >> down
		b += q[i+1] * r[i+1] >> down
	}
	return a + b
}
