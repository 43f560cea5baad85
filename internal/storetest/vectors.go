package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// An OpenVectors opens a vector store. Each call opens the same vector store again, as another process would.
type OpenVectors func() index.VectorStore

// RunVectorTests runs the tests of vector stores. For each test it calls fresh, which must return a function that
// opens a new, empty vector store. RunVectorTests does not close the vector stores.
func RunVectorTests(t *testing.T, fresh func(t *testing.T) OpenVectors) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p OpenVectors)
	}{
		{"HaveAndKeep", testHaveAndKeep},
		{"WhatIsThereStays", testWhatIsThereStays},
		{"ModelsAreApart", testModelsAreApart},
		{"Nearest", testNearest},
		{"EqualsInTheOrderOfKeys", testEqualsInTheOrderOfKeys},
		{"OtherDimension", testOtherDimension},
		{"Forget", testForget},
		{"AllOrNone", testAllOrNone},
		{"NothingAsked", testNothingAsked},
		{"TwoGateways", testTwoGateways},
		{"ManyVectors", testManyVectors},
		{"VectorsCancelled", testVectorsCancelled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

// approxEqual compares vectors with a tolerance, because they are stored as 4-byte numbers and scaled to length 1.
var approxEqual = cmpopts.EquateApprox(0, 1e-6)

// numberedKey returns a key that contains a number. Keys are sorted in the order of their numbers.
func numberedKey(n uint32) (k index.TextKey) {
	binary.BigEndian.PutUint32(k[:], n)
	binary.BigEndian.PutUint32(k[28:], ^n)
	return k
}

// vectorAtAngle returns a vector of 4 dimensions with the given length, in the plane of the first two axes. degrees
// is its angle to the first axis.
func vectorAtAngle(degrees, length float64) []float32 {
	a := degrees * math.Pi / 180
	return []float32{float32(length * math.Cos(a)), float32(length * math.Sin(a)), 0, 0}
}

func checkVectors(t *testing.T, v index.VectorStore, model string, want map[index.TextKey][]float32,
	keys ...index.TextKey) {
	t.Helper()
	got, err := v.Get(t.Context(), model, keys)
	if diff := cmp.Diff(want, got, approxEqual, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}

func requireRefused(t *testing.T, what string, err error) {
	t.Helper()
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
		t.Errorf("%s: %v, want a fault, InvalidInput", what, err)
	}
}

func testHaveAndKeep(t *testing.T, p OpenVectors) {
	v := p()
	checkVectors(t, v, "m", nil, numberedKey(1), numberedKey(2))
	requireNoError(t, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1),
		numberedKey(3): vectorAtAngle(90, 5)}))
	// Vectors are stored with length 1.
	want := map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1), numberedKey(3): vectorAtAngle(90, 1)}
	checkVectors(t, v, "m", want, numberedKey(1), numberedKey(2), numberedKey(3), numberedKey(1))
	checkVectors(t, p(), "m", want, numberedKey(3), numberedKey(1))
}

func testWhatIsThereStays(t *testing.T, p OpenVectors) {
	v := p()
	requireNoError(t, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(10, 1)}))
	requireNoError(t, p().Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(20, 1),
		numberedKey(2): vectorAtAngle(30, 1)}))
	checkVectors(t, v, "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(10, 1),
		numberedKey(2): vectorAtAngle(30, 1)}, numberedKey(1), numberedKey(2))
}

func testModelsAreApart(t *testing.T, p OpenVectors) {
	v := p()
	wide := []float32{0, 0, 1, 0, 0, 0, 0}
	// Names that differ only in characters that table and collection names cannot contain, and names that are not
	// valid names.
	models := []string{"m", "M", "m ", "M/1", "m-1", "m:1", "m_1", "", "é", "'; DROP TABLE x; --",
		strings.Repeat("long", 100) + "1", strings.Repeat("long", 100) + "2"}
	for i, model := range models {
		one := vectorAtAngle(float64(i), 1)
		if i%2 == 1 {
			one = wide
		}
		requireNoError(t, v.Put(t.Context(), model, map[index.TextKey][]float32{numberedKey(1): one}))
	}
	other := p()
	for i, model := range models {
		want := vectorAtAngle(float64(i), 1)
		if i%2 == 1 {
			want = wide
		}
		checkVectors(t, other, model, map[index.TextKey][]float32{numberedKey(1): want}, numberedKey(1))
	}
	near, err := other.Nearest(t.Context(), "nobody's", wide, 3, []index.TextKey{numberedKey(1)})
	if err != nil || len(near) != 0 {
		t.Errorf("a model that nothing was kept of: %v, %v", near, err)
	}
}

func testNearest(t *testing.T, p OpenVectors) {
	v := p()
	all, among := map[index.TextKey][]float32{}, []index.TextKey{numberedKey(99)} // key 99 has no vector
	for i := range uint32(12) {
		all[numberedKey(i)] = vectorAtAngle(float64(30*i), float64(i+1))
		among = append(among, numberedKey(11-i))
	}
	requireNoError(t, v.Put(t.Context(), "m", all))
	requireNoError(t, v.Put(t.Context(), "other", map[index.TextKey][]float32{numberedKey(50): vectorAtAngle(62, 1)}))
	cosine := func(degrees float64) float32 { return float32(math.Cos(degrees * math.Pi / 180)) }
	for _, tt := range []struct {
		name     string
		question []float32
		most     int
		among    []index.TextKey
		want     []index.Neighbor
	}{
		{"the three nearest", vectorAtAngle(62, 7), 3, among, []index.Neighbor{{Key: numberedKey(2), Cosine: cosine(2)},
			{Key: numberedKey(3), Cosine: cosine(28)}, {Key: numberedKey(1), Cosine: cosine(32)}}},
		{"among two", vectorAtAngle(62, 1), 3, []index.TextKey{numberedKey(8), numberedKey(4), numberedKey(4)},
			[]index.Neighbor{{Key: numberedKey(4), Cosine: cosine(58)}, {Key: numberedKey(8), Cosine: cosine(178)}}},
		{"another model's text", vectorAtAngle(62, 1), 3, []index.TextKey{numberedKey(50)}, nil},
		{"one of one", vectorAtAngle(0, 1e-20), 1, []index.TextKey{numberedKey(6)},
			[]index.Neighbor{{Key: numberedKey(6), Cosine: -1}}},
	} {
		got, err := v.Nearest(t.Context(), "m", tt.question, tt.most, tt.among)
		if diff := cmp.Diff(tt.want, got, approxEqual, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v; -want +got:\n%s", tt.name, err, diff)
		}
	}
	if got, err := v.Nearest(t.Context(), "m", vectorAtAngle(1, 1), 100, among); err != nil || len(got) != 12 {
		t.Errorf("more than there are: %d, %v", len(got), err)
	}
}

func testEqualsInTheOrderOfKeys(t *testing.T, p OpenVectors) {
	v := p()
	all, among := map[index.TextKey][]float32{}, []index.TextKey(nil)
	for i := range uint32(200) {
		all[numberedKey(i)] = vectorAtAngle(45, 1)
		among = append(among, numberedKey(199-i))
	}
	all[numberedKey(150)] = vectorAtAngle(5, 1)
	requireNoError(t, v.Put(t.Context(), "m", all))
	got, err := v.Nearest(t.Context(), "m", vectorAtAngle(5, 1), 3, among)
	requireNoError(t, err)
	var keys []index.TextKey
	for _, n := range got {
		keys = append(keys, n.Key)
	}
	if diff := cmp.Diff([]index.TextKey{numberedKey(150), numberedKey(0), numberedKey(1)}, keys); diff != "" {
		t.Error(diff)
	}
}

func testOtherDimension(t *testing.T, p OpenVectors) {
	v, short := p(), []float32{1, 0, 0}
	requireNoError(t, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1)}))
	for _, one := range []index.VectorStore{v, p()} {
		err := one.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(2): short})
		requireRefused(t, "a vector of another dimension", err)
		if err != nil && !strings.Contains(err.Error(),
			`the vectors kept of the model "m" have 4 numbers, and this one has 3`) {
			t.Error(err)
		}
		_, err = one.Nearest(t.Context(), "m", short, 1, []index.TextKey{numberedKey(1)})
		requireRefused(t, "a question of another dimension", err)
	}
	checkVectors(t, v, "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1)},
		numberedKey(1), numberedKey(2))
}

// testForget tests that Forget deletes all vectors of a model and the model's stored dimension, and does not change
// other models.
func testForget(t *testing.T, p OpenVectors) {
	v, short := p(), []float32{1, 0, 0}
	forget := func() {
		t.Helper()
		f, ok := v.(index.VectorForgetter)
		if !ok {
			t.Fatal("it cannot forget")
		}
		requireNoError(t, f.Forget(t.Context(), "m"))
	}
	forget()
	requireNoError(t, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1),
		numberedKey(2): vectorAtAngle(10, 1)}))
	requireNoError(t, v.Put(t.Context(), "n", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1)}))
	forget()
	checkVectors(t, p(), "m", nil, numberedKey(1), numberedKey(2))
	requireNoError(t, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(2): short}))
	checkVectors(t, p(), "m", map[index.TextKey][]float32{numberedKey(2): short}, numberedKey(1), numberedKey(2))
	checkVectors(t, p(), "n", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1)}, numberedKey(1))
}

func testAllOrNone(t *testing.T, p OpenVectors) {
	v := p()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, wrong := range map[string][]float32{
		"of another dimension": {1, 0}, "empty": {}, "without a direction": {0, 0, 0, 0}, "not a number": {1, nan, 0,
			0}, "infinite": {inf, 0, 0, 0},
	} {
		requireRefused(t, name, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1),
			numberedKey(2): wrong, numberedKey(3): vectorAtAngle(9, 1)}))
	}
	_, err := v.Nearest(t.Context(), "m", []float32{0, 0, 0, 0}, 1, []index.TextKey{numberedKey(1)})
	requireRefused(t, "a question without a direction", err)
	checkVectors(t, v, "m", nil, numberedKey(1), numberedKey(2), numberedKey(3))
}

func testNothingAsked(t *testing.T, p OpenVectors) {
	v := p()
	for range 2 {
		checkVectors(t, v, "m", nil)
		requireNoError(t, v.Put(t.Context(), "m", nil))
		for most, among := range map[int][]index.TextKey{5: nil, 0: {numberedKey(1)}, -1: {numberedKey(1)}} {
			if near, err := v.Nearest(t.Context(), "m", vectorAtAngle(1, 1), most, among); err != nil ||
				len(near) != 0 {
				t.Errorf("at most %d of %d: %v, %v", most, len(among), near, err)
			}
		}
		requireNoError(t, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1)}))
	}
}

// testTwoGateways tests that two gateways can concurrently store the same vectors in an empty vector store, in
// different batches.
func testTwoGateways(t *testing.T, p OpenVectors) {
	const texts = 120
	var all []index.TextKey
	for i := range uint32(texts) {
		all = append(all, numberedKey(i))
	}
	var wg sync.WaitGroup
	for n := range 2 {
		v := p()
		wg.Go(func() {
			for part := range slices.Chunk(all, 20+17*n) {
				vectors := map[index.TextKey][]float32{}
				for _, k := range part {
					vectors[k] = vectorAtAngle(float64(binary.BigEndian.Uint32(k[:])), 1)
				}
				if err := v.Put(t.Context(), "m", vectors); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v := p()
	got, err := v.Get(t.Context(), "m", all)
	if err != nil || len(got) != texts {
		t.Fatalf("%d of %d, %v", len(got), texts, err)
	}
	near, err := v.Nearest(t.Context(), "m", vectorAtAngle(42.2, 1), 2, all)
	if err != nil || len(near) != 2 || near[0].Key != numberedKey(42) || near[1].Key != numberedKey(43) {
		t.Errorf("%v, %v", near, err)
	}
}

// testManyVectors stores many vectors in batches, and reads and searches all of them at once.
func testManyVectors(t *testing.T, p OpenVectors) {
	v, r := p(), rand.New(rand.NewPCG(1, 2))
	const texts, batch, dimension = manyVectors, manyVectors / 4, 16
	all, want := map[index.TextKey][]float32{}, map[index.TextKey]float64{}
	keys := make([]index.TextKey, 0, texts)
	question := make([]float32, dimension)
	for i := range question {
		question[i] = r.Float32() - 0.5
	}
	for i := range uint32(texts) {
		one := make([]float32, dimension)
		var dot, length, asked float64
		for j := range one {
			one[j] = r.Float32() - 0.5
			dot += float64(one[j]) * float64(question[j])
			length += float64(one[j]) * float64(one[j])
			asked += float64(question[j]) * float64(question[j])
		}
		all[numberedKey(i)], want[numberedKey(i)] = one, dot/math.Sqrt(length*asked)
		keys = append(keys, numberedKey(i))
	}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for part := range slices.Chunk(keys, batch) {
		vectors := map[index.TextKey][]float32{}
		for _, k := range part {
			vectors[k] = all[k]
		}
		requireNoError(t, v.Put(t.Context(), "m", vectors))
	}
	got, err := v.Get(t.Context(), "m", keys)
	if err != nil || len(got) != texts {
		t.Fatalf("%d of %d, %v", len(got), texts, err)
	}
	near, err := v.Nearest(t.Context(), "m", question, 50, keys)
	requireNoError(t, err)
	slices.SortFunc(keys, func(a, b index.TextKey) int {
		if want[a] > want[b] {
			return -1
		}
		return 1
	})
	for i, n := range near {
		if math.Abs(float64(n.Cosine)-want[keys[i]]) > 1e-5 || math.Abs(want[n.Key]-want[keys[i]]) > 1e-6 {
			t.Fatalf("place %d has the cosine %v, want %v", i, n.Cosine, want[keys[i]])
		}
	}
	if len(near) != 50 {
		t.Error(fmt.Sprint(len(near), " are near"))
	}
}

func testVectorsCancelled(t *testing.T, p OpenVectors) {
	v := p()
	requireNoError(t, v.Put(t.Context(), "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, had := v.Get(ctx, "m", []index.TextKey{numberedKey(1)})
	_, near := v.Nearest(ctx, "m", vectorAtAngle(0, 1), 1, []index.TextKey{numberedKey(1)})
	kept := v.Put(ctx, "m", map[index.TextKey][]float32{numberedKey(2): vectorAtAngle(0, 1)})
	for step, err := range map[string]error{"have": had, "nearest": near, "keep": kept} {
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.Transient {
			t.Errorf("%s after it was called off: %v, want a fault, Transient", step, err)
		}
	}
	// the cancellations do not count as failures of the backend
	checkVectors(t, v, "m", map[index.TextKey][]float32{numberedKey(1): vectorAtAngle(0, 1)},
		numberedKey(1), numberedKey(2))
}
