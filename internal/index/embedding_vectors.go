package index

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// maxDimension is the maximum dimension of a vector. With a greater dimension, the sum in dotProduct could overflow.
const maxDimension = 8192

// A vectorTable contains vectors in memory. Each number is stored in one byte, which needs a quarter of the memory of
// float32. The rounding changes at most one of twenty nearest neighbours. The sums are integers, so they are the same
// on every machine.
type vectorTable struct {
	mu        sync.RWMutex
	dimension int
	byKey     map[TextKey]*quantizedVector
	searches  atomic.Int64
}

type quantizedVector struct {
	// numbers is empty if the vector is only in the store.
	numbers []int8
	length  float64
	// last is the number of the last search that covered this text.
	last atomic.Int64
}

func newVectorTable() *vectorTable { return &vectorTable{byKey: map[TextKey]*quantizedVector{}} }

func (r *vectorTable) size() (rows, dimension int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byKey), r.dimension
}

// reset removes all vectors, and sets the dimension of future vectors.
func (r *vectorTable) reset(dimension int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dimension, r.byKey = dimension, map[TextKey]*quantizedVector{}
}

// put adds vectors, which must have the dimension of the table. If elsewhere is set, put adds only the keys of the
// vectors, because the numbers are only in the store.
func (r *vectorTable) put(vectors map[TextKey][]float32, elsewhere bool) {
	made := make(map[TextKey]*quantizedVector, len(vectors))
	for key, v := range vectors {
		row := &quantizedVector{}
		if !elsewhere {
			row.numbers = make([]int8, len(v))
			row.length = quantize(row.numbers, v, math.MaxInt8)
		}
		made[key] = row
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, row := range made {
		row.last.Store(r.searches.Load())
		r.byKey[key] = row
	}
}

// quantize stores v in to, with integers. It scales v so that the absolute value of its largest number becomes most,
// and then rounds the numbers. It returns the length of the resulting vector.
func quantize[N int8 | int16](to []N, v []float32, most float64) (length float64) {
	var largest, sum float64
	for _, x := range v {
		largest = max(largest, math.Abs(float64(x)))
	}
	if !(largest > 0) || math.IsInf(largest, 0) {
		return 1 // a zero vector has no direction and no neighbours
	}
	for i, x := range v {
		n := math.RoundToEven(float64(x) / largest * most)
		to[i] = N(n)
		sum += n * n
	}
	return math.Sqrt(sum)
}

// coversEnough reports whether at least the share minCoverage of the keys have a vector. It also counts as a search
// that covers these keys, see quantizedVector.last.
func (r *vectorTable) coversEnough(among []TextKey) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now, have := r.searches.Add(1), 0
	for _, key := range among {
		if row := r.byKey[key]; row != nil {
			row.last.Store(now)
			have++
		}
	}
	return float64(have) >= minCoverage*float64(len(among))
}

// nearest returns at most most of the keys in among: those whose vectors are nearest to v, nearest first. It returns
// none if v has another dimension than the table.
func (r *vectorTable) nearest(v []float32, most int, among []TextKey) (near []Neighbor) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(v) != r.dimension {
		return nil
	}
	question := make([]int16, len(v))
	length := quantize(question, v, 2047) // no overflow: 2047·127·8192 is less than 2³¹
	full := false                         // near[:most] is sorted
	for _, key := range among {
		row := r.byKey[key]
		if row == nil {
			continue
		}
		n := Neighbor{key, float32(float64(dotProduct(row.numbers, question)) / (length * row.length))}
		if full && compareNeighbors(near[most-1], n) < 0 {
			continue
		}
		if near = append(near, n); len(near) == 2*most {
			near, full = topNeighbors(near, most), true
		}
	}
	return topNeighbors(near, most)
}

// topNeighbors sorts the neighbours, removes duplicates and returns the first ones, at most most. Duplicates occur
// because two documents may have the same text.
func topNeighbors(near []Neighbor, most int) []Neighbor {
	slices.SortFunc(near, compareNeighbors)
	near = slices.Compact(near)
	return near[:min(len(near), most)]
}

// compareNeighbors orders by decreasing cosine, then by key.
func compareNeighbors(a, b Neighbor) int {
	return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), bytes.Compare(a.Key[:], b.Key[:]))
}

func dotProduct(a []int8, b []int16) int32 {
	var s0, s1, s2, s3 int32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += int32(a[i]) * int32(b[i])
		s1 += int32(a[i+1]) * int32(b[i+1])
		s2 += int32(a[i+2]) * int32(b[i+2])
		s3 += int32(a[i+3]) * int32(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += int32(a[i]) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

// leastRecentlySearched returns at most most of the known keys: the keys of the texts that have not been searched for
// the longest time.
func (r *vectorTable) leastRecentlySearched(known map[TextKey]Document, most int) []TextKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	type used struct {
		key  TextKey
		last int64
	}
	all := make([]used, 0, len(known))
	for key := range known {
		u := used{key, math.MaxInt64} // a text without a vector is removed last
		if row := r.byKey[key]; row != nil {
			u.last = row.last.Load()
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b used) int {
		return cmp.Or(cmp.Compare(a.last, b.last), bytes.Compare(a.key[:], b.key[:]))
	})
	keys := make([]TextKey, 0, most)
	for _, u := range all[:min(most, len(all))] {
		keys = append(keys, u.key)
	}
	return keys
}

func (r *vectorTable) remove(keys []TextKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		delete(r.byKey, key)
	}
}
