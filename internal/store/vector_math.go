package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// MaxVectorDimension is the maximum number of elements of a vector.
const MaxVectorDimension = 16000 // the limit of a pgvector column

// errTooManyVectors is the error for a call with more vectors than can be saved at once.
var errTooManyVectors = errors.New("too many vectors for one call")

// A DimensionError is the error for vectors of one model with different dimensions. Usually the model was replaced
// under the same name.
type DimensionError struct {
	Model string
	// Have is the dimension of the saved vectors, and Want the dimension of the new vector.
	Have, Want int
}

// Error returns the text of the error.
func (e *DimensionError) Error() string {
	return fmt.Sprintf("the vectors kept of the model %q have %d numbers, and this one has %d", e.Model, e.Have, e.Want)
}

// maxCollection is the maximum length of a collection's name in bytes. The name is limited because the longer names
// of tables and Qdrant collections begin with it.
const maxCollection = 48

// CheckCollection returns an error if the name of a collection is invalid. A valid name has 1 to 48 characters from a
// to z, 0 to 9 and "_".
func CheckCollection(name string) error {
	other := func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') }
	if name == "" || len(name) > maxCollection || strings.ContainsFunc(name, other) {
		return fmt.Errorf("the name of a collection has 1 to %d of a to z, 0 to 9 and _", maxCollection)
	}
	return nil
}

// UnitVector returns the vector with length 1 and the direction of v. It returns an error if v is zero or not
// finite, or has an invalid dimension.
func UnitVector(v []float32) ([]float32, error) {
	if len(v) == 0 || len(v) > MaxVectorDimension {
		return nil, fmt.Errorf("a vector has 1 to %d numbers, and this one has %d", MaxVectorDimension, len(v))
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return nil, errors.New("a vector has no direction")
	}
	unit := make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) / length)
	}
	return unit, nil
}

// PackVector encodes a vector as 4 bytes for each number (IEEE 754, little-endian).
func PackVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// UnpackVector decodes a vector that PackVector encoded. It returns an error if b is empty or not a multiple of 4
// bytes.
func UnpackVector(b []byte) ([]float32, error) {
	if len(b) == 0 || len(b)%4 != 0 {
		return nil, fmt.Errorf("a vector of %d bytes is damaged", len(b))
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}

// DotPacked returns the dot product of a vector and a packed vector of the same dimension.
func DotPacked(v []float32, packed []byte) float32 {
	var a, b, c, d float32 // independent sums, which the processor computes in parallel
	i := 0
	for ; i+4 <= len(v); i += 4 {
		p := packed[4*i : 4*i+16]
		a += v[i] * math.Float32frombits(binary.LittleEndian.Uint32(p))
		b += v[i+1] * math.Float32frombits(binary.LittleEndian.Uint32(p[4:]))
		c += v[i+2] * math.Float32frombits(binary.LittleEndian.Uint32(p[8:]))
		d += v[i+3] * math.Float32frombits(binary.LittleEndian.Uint32(p[12:]))
	}
	for ; i < len(v); i++ {
		a += v[i] * math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	return a + b + c + d
}

// CompareNear compares two neighbors for sorting: by decreasing cosine, then by key.
func CompareNear(a, b index.Neighbor) int {
	return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), bytes.Compare(a.Key[:], b.Key[:]))
}

// SortedKeys returns the keys, sorted and without duplicates.
func SortedKeys(keys []index.TextKey) []index.TextKey {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b index.TextKey) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(keys)
}
