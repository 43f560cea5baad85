package index

import (
	"math"
)

// A packedVector is a vector in whole numbers from -half to half, so that the cosine of two is the same on every
// machine. Four of them stand in a word, each half higher than it is, in 16 bits of their own: one multiplication of
// two words adds up the products of four numbers, in the highest 16 bits.
type packedVector struct {
	packed [EncoderDims / numbersPerWord]uint64
	total  int64   // of the numbers
	per    float64 // one by the length of the vector; 0 is a vector of nothing
}

const (
	numbersPerWord = 4
	bitsPerNumber  = 16
	maxNumber      = 63
)

// packVector rounds a vector to a row.
func packVector(v *[EncoderDims]float32) packedVector { return pack(v, false) }

// packedQuery is a row that others are compared with: its numbers stand in their words the other way round.
type packedQuery packedVector

func packQuery(v *[EncoderDims]float32) packedQuery { return packedQuery(pack(v, true)) }

func pack(v *[EncoderDims]float32, reverse bool) packedVector {
	var most float64
	for _, x := range v {
		most = max(most, math.Abs(float64(x)))
	}
	var r packedVector
	if most == 0 {
		return r
	}
	var square int64
	for i, x := range v {
		n := int64(math.RoundToEven(float64(x) / most * maxNumber))
		r.total += n
		square += n * n
		lane := i % numbersPerWord
		if reverse {
			lane = numbersPerWord - 1 - lane
		}
		r.packed[i/numbersPerWord] |= uint64(n+maxNumber) << (lane * bitsPerNumber)
	}
	r.per = 1 / math.Sqrt(float64(square))
	return r
}

// cosine is 0 if one of the two is of nothing.
func (q *packedQuery) cosine(r *packedVector) float64 {
	product := int64(packedProducts(&q.packed, &r.packed)) - maxNumber*(q.total+
		r.total) - maxNumber*maxNumber*EncoderDims
	return float64(product) * q.per * r.per
}

// packedProducts adds up the products of two vectors' numbers, as they stand in their words, in two sums of which
// neither waits for the other: most of a question's time may be spent here.
func packedProducts(q, r *[EncoderDims / numbersPerWord]uint64) uint64 {
	const down = bitsPerNumber * (numbersPerWord - 1)
	var a, b uint64
	for i := 0; i < len(q); i += 2 {
		a += q[i] * r[i] >> down
		b += q[i+1] * r[i+1] >> down
	}
	return a + b
}
