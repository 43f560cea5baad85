package encoder

import (
	_ "embed" // the weights
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
)

//go:embed weights.bin
var builtIn string

// builtInOnce reads the weights when they are first asked for: what asks for none pays nothing.
var builtInOnce = sync.OnceValue(func() *Encoder {
	e, err := Read(builtIn)
	if err != nil {
		panic(err) // a test reads them
	}
	return e
})

// BuiltIn gives the encoder that is built in.
func BuiltIn() *Encoder { return builtInOnce() }

// An Encoder gives texts their vectors. It may be used from several goroutines.
type Encoder struct {
	rows   map[string]int32
	pieces int    // how many slots for pieces stand after the rows of the words
	data   string // rows of Dims numbers from -127 to 127
}

const (
	// Dims is how many numbers a vector has.
	Dims = 128
	// one is what a whole word counts: its pieces share it.
	one = 64
	// magic begins the weights.
	magic = "encoder1"
)

// Read reads weights: the magic; as little-endian uint32 the dimensions, the slots for pieces, the words, and the bytes of the
// words with a line end between; these; and the rows, a byte with a sign for each number.
func Read(weights string) (*Encoder, error) {
	rest, ok := strings.CutPrefix(weights, magic)
	if !ok || len(rest) < 16 {
		return nil, fmt.Errorf("read the encoder: no weights")
	}
	number := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32([]byte(rest[4*i : 4*i+4]))) }
	dims, pieces, count, size := number(0), number(1), number(2), number(3)
	rest = rest[16:]
	if dims != Dims || pieces == 0 || count > size+1 || size > uint64(len(rest)) {
		return nil, fmt.Errorf("read the encoder: %d dimensions, %d words, %d pieces", dims, count, pieces)
	}
	names := strings.Split(rest[:size], "\n")
	e := &Encoder{rows: make(map[string]int32, count), pieces: int(pieces), data: rest[size:]}
	if uint64(len(names)) != count || uint64(len(e.data)) != (count+pieces)*Dims {
		return nil, fmt.Errorf("read the encoder: %d words and %d bytes of rows", len(names), len(e.data))
	}
	for i, name := range names {
		e.rows[name] = int32(i)
	}
	return e, nil
}

// A Sum is texts added up, each with its weight. The zero value is of no text.
type Sum [Dims]int64

// Add adds the words of a text, each with this weight: from 1 to 100.
func (e *Encoder) Add(to *Sum, text string, weight int64) {
	var whole, pieces [Dims]int32
	for _, word := range Words(text) {
		if row, ok := e.rows[word]; ok {
			e.add(&whole, int(row))
			continue
		}
		clear(pieces[:])
		slots := Pieces(word, e.pieces)
		for _, slot := range slots {
			e.add(&pieces, len(e.rows)+slot)
		}
		for i, n := range pieces {
			to[i] += weight * (one * int64(n) / int64(len(slots)))
		}
	}
	for i, n := range whole {
		to[i] += weight * one * int64(n)
	}
}

func (e *Encoder) add(to *[Dims]int32, i int) {
	row := e.data[i*Dims : (i+1)*Dims]
	for j := range to {
		to[j] += int32(int8(row[j]))
	}
}

// Unit gives the sum as a vector of length one; all zero if it is of nothing.
func (s *Sum) Unit() (v [Dims]float32) {
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
