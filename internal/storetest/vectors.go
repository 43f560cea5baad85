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
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A VectorPlace is where one keeper's vectors are. Each call opens it once more, as another process would.
type VectorPlace func() index.Vectors

// RunVectors tests keepers of vectors. For each test it asks for a fresh place, with nothing kept; the test closes what the
// place opens.
func RunVectors(t *testing.T, fresh func(t *testing.T) VectorPlace) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p VectorPlace)
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

// nearly is how exact a vector comes back: 4-byte numbers, brought to the length 1.
var nearly = cmpopts.EquateApprox(0, 1e-6)

// keyed is the key with that number: keys are in the order of their numbers.
func keyed(n uint32) (k index.Key) {
	binary.BigEndian.PutUint32(k[:], n)
	binary.BigEndian.PutUint32(k[28:], ^n)
	return k
}

// at is a direction in a plane, by its angle to the first axis in degrees, in a space of 4 dimensions.
func at(degrees, length float64) []float32 {
	a := degrees * math.Pi / 180
	return []float32{float32(length * math.Cos(a)), float32(length * math.Sin(a)), 0, 0}
}

func has(t *testing.T, v index.Vectors, model string, want map[index.Key][]float32, keys ...index.Key) {
	t.Helper()
	got, err := v.Have(t.Context(), model, keys)
	if diff := cmp.Diff(want, got, nearly, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
		t.Errorf("%s: %v, want a fault, InvalidInput", what, err)
	}
}

func testHaveAndKeep(t *testing.T, p VectorPlace) {
	v := p()
	has(t, v, "m", nil, keyed(1), keyed(2))
	must(t, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(0, 1), keyed(3): at(90, 5)}))
	// Their lengths say nothing, so that what comes back has the length 1.
	want := map[index.Key][]float32{keyed(1): at(0, 1), keyed(3): at(90, 1)}
	has(t, v, "m", want, keyed(1), keyed(2), keyed(3), keyed(1))
	has(t, p(), "m", want, keyed(3), keyed(1))
}

func testWhatIsThereStays(t *testing.T, p VectorPlace) {
	v := p()
	must(t, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(10, 1)}))
	must(t, p().Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(20, 1), keyed(2): at(30, 1)}))
	has(t, v, "m", map[index.Key][]float32{keyed(1): at(10, 1), keyed(2): at(30, 1)}, keyed(1), keyed(2))
}

func testModelsAreApart(t *testing.T, p VectorPlace) {
	v := p()
	wide := []float32{0, 0, 1, 0, 0, 0, 0}
	// Names that differ in what a name of a table or collection may not have, and such as are none.
	models := []string{"m", "M", "m ", "M/1", "m-1", "m:1", "m_1", "", "é", "'; DROP TABLE x; --", strings.Repeat("long", 100) + "1", strings.Repeat("long", 100) + "2"}
	for i, model := range models {
		one := at(float64(i), 1)
		if i%2 == 1 {
			one = wide
		}
		must(t, v.Keep(t.Context(), model, map[index.Key][]float32{keyed(1): one}))
	}
	other := p()
	for i, model := range models {
		want := at(float64(i), 1)
		if i%2 == 1 {
			want = wide
		}
		has(t, other, model, map[index.Key][]float32{keyed(1): want}, keyed(1))
	}
	near, err := other.Nearest(t.Context(), "nobody's", wide, 3, []index.Key{keyed(1)})
	if err != nil || len(near) != 0 {
		t.Errorf("a model that nothing was kept of: %v, %v", near, err)
	}
}

func testNearest(t *testing.T, p VectorPlace) {
	v := p()
	all, among := map[index.Key][]float32{}, []index.Key{keyed(99)} // which has no vector
	for i := range uint32(12) {
		all[keyed(i)] = at(float64(30*i), float64(i+1))
		among = append(among, keyed(11-i))
	}
	must(t, v.Keep(t.Context(), "m", all))
	must(t, v.Keep(t.Context(), "other", map[index.Key][]float32{keyed(50): at(62, 1)}))
	cosine := func(degrees float64) float32 { return float32(math.Cos(degrees * math.Pi / 180)) }
	for _, tt := range []struct {
		name     string
		question []float32
		most     int
		among    []index.Key
		want     []index.Near
	}{
		{"the three nearest", at(62, 7), 3, among, []index.Near{{Key: keyed(2), Cosine: cosine(2)}, {Key: keyed(3), Cosine: cosine(28)}, {Key: keyed(1), Cosine: cosine(32)}}},
		{"among two", at(62, 1), 3, []index.Key{keyed(8), keyed(4), keyed(4)}, []index.Near{{Key: keyed(4), Cosine: cosine(58)}, {Key: keyed(8), Cosine: cosine(178)}}},
		{"another model's text", at(62, 1), 3, []index.Key{keyed(50)}, nil},
		{"one of one", at(0, 1e-20), 1, []index.Key{keyed(6)}, []index.Near{{Key: keyed(6), Cosine: -1}}},
	} {
		got, err := v.Nearest(t.Context(), "m", tt.question, tt.most, tt.among)
		if diff := cmp.Diff(tt.want, got, nearly, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v; -want +got:\n%s", tt.name, err, diff)
		}
	}
	if got, err := v.Nearest(t.Context(), "m", at(1, 1), 100, among); err != nil || len(got) != 12 {
		t.Errorf("more than there are: %d, %v", len(got), err)
	}
}

func testEqualsInTheOrderOfKeys(t *testing.T, p VectorPlace) {
	v := p()
	all, among := map[index.Key][]float32{}, []index.Key(nil)
	for i := range uint32(200) {
		all[keyed(i)] = at(45, 1)
		among = append(among, keyed(199-i))
	}
	all[keyed(150)] = at(5, 1)
	must(t, v.Keep(t.Context(), "m", all))
	got, err := v.Nearest(t.Context(), "m", at(5, 1), 3, among)
	must(t, err)
	var keys []index.Key
	for _, n := range got {
		keys = append(keys, n.Key)
	}
	if diff := cmp.Diff([]index.Key{keyed(150), keyed(0), keyed(1)}, keys); diff != "" {
		t.Error(diff)
	}
}

func testOtherDimension(t *testing.T, p VectorPlace) {
	v, short := p(), []float32{1, 0, 0}
	must(t, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(0, 1)}))
	for _, one := range []index.Vectors{v, p()} {
		err := one.Keep(t.Context(), "m", map[index.Key][]float32{keyed(2): short})
		refused(t, "a vector of another dimension", err)
		if err != nil && !strings.Contains(err.Error(), `the vectors kept of the model "m" have 4 numbers, and this one has 3`) {
			t.Error(err)
		}
		_, err = one.Nearest(t.Context(), "m", short, 1, []index.Key{keyed(1)})
		refused(t, "a question of another dimension", err)
	}
	has(t, v, "m", map[index.Key][]float32{keyed(1): at(0, 1)}, keyed(1), keyed(2))
}

// testForget has another model come by the same name: what was kept of the first is gone, and of others nothing.
func testForget(t *testing.T, p VectorPlace) {
	v, short := p(), []float32{1, 0, 0}
	forget := func() {
		t.Helper()
		f, ok := v.(index.Forgetter)
		if !ok {
			t.Fatal("it cannot forget")
		}
		must(t, f.Forget(t.Context(), "m"))
	}
	forget()
	must(t, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(0, 1), keyed(2): at(10, 1)}))
	must(t, v.Keep(t.Context(), "n", map[index.Key][]float32{keyed(1): at(0, 1)}))
	forget()
	has(t, p(), "m", nil, keyed(1), keyed(2))
	must(t, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(2): short}))
	has(t, p(), "m", map[index.Key][]float32{keyed(2): short}, keyed(1), keyed(2))
	has(t, p(), "n", map[index.Key][]float32{keyed(1): at(0, 1)}, keyed(1))
}

func testAllOrNone(t *testing.T, p VectorPlace) {
	v := p()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, wrong := range map[string][]float32{
		"of another dimension": {1, 0}, "empty": {}, "without a direction": {0, 0, 0, 0}, "not a number": {1, nan, 0, 0}, "infinite": {inf, 0, 0, 0},
	} {
		refused(t, name, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(0, 1), keyed(2): wrong, keyed(3): at(9, 1)}))
	}
	_, err := v.Nearest(t.Context(), "m", []float32{0, 0, 0, 0}, 1, []index.Key{keyed(1)})
	refused(t, "a question without a direction", err)
	has(t, v, "m", nil, keyed(1), keyed(2), keyed(3))
}

func testNothingAsked(t *testing.T, p VectorPlace) {
	v := p()
	for range 2 {
		has(t, v, "m", nil)
		must(t, v.Keep(t.Context(), "m", nil))
		for most, among := range map[int][]index.Key{5: nil, 0: {keyed(1)}, -1: {keyed(1)}} {
			if near, err := v.Nearest(t.Context(), "m", at(1, 1), most, among); err != nil || len(near) != 0 {
				t.Errorf("at most %d of %d: %v, %v", most, len(among), near, err)
			}
		}
		must(t, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(0, 1)}))
	}
}

// testTwoGateways has two keep the same vectors at once, the very first ones, each in parts of its own.
func testTwoGateways(t *testing.T, p VectorPlace) {
	const texts = 120
	var all []index.Key
	for i := range uint32(texts) {
		all = append(all, keyed(i))
	}
	var wg sync.WaitGroup
	for n := range 2 {
		v := p()
		wg.Go(func() {
			for part := range slices.Chunk(all, 20+17*n) {
				vectors := map[index.Key][]float32{}
				for _, k := range part {
					vectors[k] = at(float64(binary.BigEndian.Uint32(k[:])), 1)
				}
				if err := v.Keep(t.Context(), "m", vectors); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v := p()
	got, err := v.Have(t.Context(), "m", all)
	if err != nil || len(got) != texts {
		t.Fatalf("%d of %d, %v", len(got), texts, err)
	}
	near, err := v.Nearest(t.Context(), "m", at(42.2, 1), 2, all)
	if err != nil || len(near) != 2 || near[0].Key != keyed(42) || near[1].Key != keyed(43) {
		t.Errorf("%v, %v", near, err)
	}
}

// testManyVectors keeps many in parts, and asks for all at once.
func testManyVectors(t *testing.T, p VectorPlace) {
	v, r := p(), rand.New(rand.NewPCG(1, 2))
	const texts, batch, dimension = many, many / 4, 16
	all, want := map[index.Key][]float32{}, map[index.Key]float64{}
	keys := make([]index.Key, 0, texts)
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
		all[keyed(i)], want[keyed(i)] = one, dot/math.Sqrt(length*asked)
		keys = append(keys, keyed(i))
	}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for part := range slices.Chunk(keys, batch) {
		vectors := map[index.Key][]float32{}
		for _, k := range part {
			vectors[k] = all[k]
		}
		must(t, v.Keep(t.Context(), "m", vectors))
	}
	got, err := v.Have(t.Context(), "m", keys)
	if err != nil || len(got) != texts {
		t.Fatalf("%d of %d, %v", len(got), texts, err)
	}
	near, err := v.Nearest(t.Context(), "m", question, 50, keys)
	must(t, err)
	slices.SortFunc(keys, func(a, b index.Key) int {
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

func testVectorsCancelled(t *testing.T, p VectorPlace) {
	v := p()
	must(t, v.Keep(t.Context(), "m", map[index.Key][]float32{keyed(1): at(0, 1)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, had := v.Have(ctx, "m", []index.Key{keyed(1)})
	_, near := v.Nearest(ctx, "m", at(0, 1), 1, []index.Key{keyed(1)})
	kept := v.Keep(ctx, "m", map[index.Key][]float32{keyed(2): at(0, 1)})
	for step, err := range map[string]error{"have": had, "nearest": near, "keep": kept} {
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.Transient {
			t.Errorf("%s after it was called off: %v, want a fault, Transient", step, err)
		}
	}
	has(t, v, "m", map[index.Key][]float32{keyed(1): at(0, 1)}, keyed(1), keyed(2)) // the place is not to blame
}
