package index

import (
	_ "embed" // the weights
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

//go:embed weights.bin
var builtInWeights string

// loadBuiltIn decodes the embedded weights at the first call. So a program that does not use the encoder needs no
// time and memory for them.
var loadBuiltIn = sync.OnceValue(func() *WordEncoder {
	e, err := ReadEncoder(builtInWeights)
	if err != nil {
		panic(err) // impossible: a test decodes the embedded weights
	}
	return e
})

// BuiltInEncoder returns the built-in encoder.
func BuiltInEncoder() *WordEncoder { return loadBuiltIn() }

// A WordEncoder computes the vector of a text from the vectors of its words. It is safe for concurrent use.
type WordEncoder struct {
	rows       map[string]int32
	pieceSlots int    // number of rows for pieces of unknown words; in data they follow the rows of the words
	data       string // rows of EncoderDims signed bytes
}

const (
	// EncoderDims is the dimension of a vector.
	EncoderDims = 128
	// wordWeight is the weight of the vector of a word in a sum. For an unknown word, it is divided equally among the
	// pieces of the word.
	wordWeight = 64
	// weightsMagic is the text with which encoded weights begin.
	weightsMagic = "encoder1"
)

// ReadEncoder decodes weights. They consist of weightsMagic, four little-endian uint32 numbers, the word list with
// one word on each line, and the rows. The numbers are the dimension, the number of rows for word pieces, the number
// of words, and the length of the word list. A row has one signed byte for each dimension.
func ReadEncoder(weights string) (*WordEncoder, error) {
	rest, ok := strings.CutPrefix(weights, weightsMagic)
	if !ok || len(rest) < 16 {
		return nil, fmt.Errorf("read the encoder: no weights")
	}
	number := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32([]byte(rest[4*i : 4*i+4]))) }
	dims, pieces, count, size := number(0), number(1), number(2), number(3)
	rest = rest[16:]
	if dims != EncoderDims || pieces == 0 || count > size+1 || size > uint64(len(rest)) {
		return nil, fmt.Errorf("read the encoder: %d dimensions, %d words, %d pieces", dims, count, pieces)
	}
	names := strings.Split(rest[:size], "\n")
	e := &WordEncoder{rows: make(map[string]int32, count), pieceSlots: int(pieces), data: rest[size:]}
	if uint64(len(names)) != count || uint64(len(e.data)) != (count+pieces)*EncoderDims {
		return nil, fmt.Errorf("read the encoder: %d words and %d bytes of rows", len(names), len(e.data))
	}
	for i, name := range names {
		e.rows[name] = int32(i)
	}
	return e, nil
}

// A VectorSum is a weighted sum of vectors. The zero value is an empty sum.
type VectorSum [EncoderDims]int64

// AddWords adds the vector of each word, multiplied by weight (1 to 100), to the sum. The vector of an unknown word
// is the mean of its pieces. Unknown words with other characters than a to z have no vector and are skipped.
func (e *WordEncoder) AddWords(to *VectorSum, all []string, weight int64) {
	var rows []int32
	var strange []string // words without a row
	for _, word := range all {
		if row, ok := e.rows[word]; ok {
			rows = append(rows, row)
		} else if isLatinWord(word) {
			strange = append(strange, word)
		}
	}
	slices.Sort(rows)
	for i, n := range e.sumRows(slices.Compact(rows)) {
		to[i] += weight * wordWeight * n
	}
	slices.Sort(strange)
	for _, word := range slices.Compact(strange) {
		slots := WordPieces(word, e.pieceSlots)
		for i := range slots {
			slots[i] += int32(len(e.rows))
		}
		for i, n := range e.sumRows(slots) {
			to[i] += weight * (wordWeight * n / int64(len(slots)))
		}
	}
}

// sumRows returns the sum of the rows. It adds four numbers with one addition, in the 16-bit parts of a 64-bit
// integer. To make the numbers positive, it first adds 128 to each. It adds at most 256 rows in this way, so that no
// sum overflows into the next part.
func (e *WordEncoder) sumRows(rows []int32) (sum [EncoderDims]int64) {
	const few, signs, every2nd, lanes, bits = 256, 0x8080808080808080, 0x00ff00ff00ff00ff, 4, 16
	for len(rows) > 0 {
		some := rows[:min(few, len(rows))]
		rows = rows[len(some):]
		var even, odd [EncoderDims / 8]uint64
		for _, row := range some {
			data := e.data[int(row)*EncoderDims:][:EncoderDims]
			for i := range even {
				w := firstEightBytes(data[8*i:]) ^ signs
				even[i] += w & every2nd
				odd[i] += w >> 8 & every2nd
			}
		}
		for i := range even {
			for lane := range lanes {
				at := 8*i + 2*lane
				sum[at] += int64(even[i]>>(bits*lane)&0xffff) - 128*int64(len(some))
				sum[at+1] += int64(odd[i]>>(bits*lane)&0xffff) - 128*int64(len(some))
			}
		}
	}
	return sum
}

// firstEightBytes returns the first eight bytes of a text as a little-endian number.
func firstEightBytes(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(
		s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// UnitVector returns the sum scaled to length 1, or a zero vector for an empty sum.
func (s *VectorSum) UnitVector() (v [EncoderDims]float32) {
	var square float64
	for _, n := range s {
		square += float64(n * n)
	}
	if square == 0 {
		return v
	}
	length := math.Sqrt(square)
	for i, n := range s {
		v[i] = float32(float64(n) / length)
	}
	return v
}
