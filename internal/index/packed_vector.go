package index

import (
	"math"
)

// A packedVector is a vector of integers from -maxNumber to maxNumber. With integers, cosines are the same on every
// machine. Each 64-bit word contains four numbers of 16 bits. maxNumber is added to each number, so that no number is
// negative. One multiplication of two words then computes the sum of four products in the highest 16 bits.
type packedVector struct {
	packed [EncoderDims / numbersPerWord]uint64
	total  int64   // sum of the numbers, without the added maxNumber
	per    float64 // 1 divided by the length of the vector, or 0 for a zero vector
}

const (
	numbersPerWord = 4
	bitsPerNumber  = 16
	maxNumber      = 63
)

// packVector returns the packed form of a vector. The numbers are scaled and rounded to integers.
func packVector(v *[EncoderDims]float32) packedVector { return pack(v, false) }

// A packedQuery is the vector of a question. The four numbers in each word are in reverse order, as packedProducts
// requires.
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

// cosine returns the cosine of the two vectors, or 0 if one of them is a zero vector.
func (q *packedQuery) cosine(r *packedVector) float64 {
	product := int64(packedProducts(&q.packed, &r.packed)) - maxNumber*(q.total+
		r.total) - maxNumber*maxNumber*EncoderDims
	return float64(product) * q.per * r.per
}

// packedProducts returns the sum of the products of a packedQuery and a packedVector, including the added maxNumber.
// It computes two independent sums, which the processor can compute in parallel. A search spends much of its time in
// this function.
func packedProducts(q, r *[EncoderDims / numbersPerWord]uint64) uint64 {
	const down = bitsPerNumber * (numbersPerWord - 1)
	var a, b uint64
	for i := 0; i < len(q); i += 2 {
		a += q[i] * r[i] >> down
		b += q[i+1] * r[i+1] >> down
	}
	return a + b
}
