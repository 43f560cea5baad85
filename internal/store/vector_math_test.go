package store_test

import (
	"math"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

func TestPackIsLittleEndian(t *testing.T) {
	if diff := cmp.Diff([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, store.PackVector([]float32{1, -2})); diff != "" {
		t.Error(diff)
	}
}

// FuzzUnpack sees that what can be read is written the same way, and that Dot agrees with the definition.
func FuzzUnpack(f *testing.F) {
	f.Add(store.PackVector([]float32{1, 2, 3, 4, 5}))
	f.Add([]byte{1, 2, 3})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := store.UnpackVector(b)
		if (err != nil) != (len(b) == 0 || len(b)%4 != 0) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if err != nil {
			return
		}
		if !slices.Equal(store.PackVector(v), b) {
			t.Errorf("%x became %v and %x", b, v, store.PackVector(v))
		}
		unit, err := store.UnitVector(v)
		if err != nil {
			return
		}
		var want float64
		for _, x := range unit {
			want += float64(x) * float64(x)
		}
		if got := store.DotPacked(unit, store.PackVector(unit)); math.Abs(float64(got)-want) > 1e-3 ||
			math.Abs(want-1) > 1e-3 {
			t.Errorf("the length of %v is %v, by its dot product %v", unit, want, got)
		}
	})
}

func TestUnit(t *testing.T) {
	nan, inf, most := float32(math.NaN()), float32(math.Inf(-1)), float32(math.MaxFloat32)
	for _, tt := range []struct {
		v, want []float32
	}{
		{[]float32{3, 4}, []float32{0.6, 0.8}},
		{[]float32{most, 0}, []float32{1, 0}},
		{[]float32{1e-45, 0}, []float32{1, 0}},
		{[]float32{0, 0}, nil},
		{[]float32{1, nan}, nil},
		{[]float32{inf, 1}, nil},
		{nil, nil},
		{make([]float32, store.MaxVectorDimension+1), nil},
	} {
		got, err := store.UnitVector(tt.v)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%v: %v %s", tt.v[:min(len(tt.v), 3)], err, diff)
		}
	}
}

func TestOrder(t *testing.T) {
	a, b, c := index.TextKey{1}, index.TextKey{2}, index.TextKey{3}
	near := []index.Neighbor{{Key: c, Cosine: 0.5}, {Key: b, Cosine: 0.5}, {Key: a, Cosine: 0.1}, {Key: c, Cosine: 0.9}}
	slices.SortFunc(near, store.CompareNear)
	want := []index.Neighbor{{Key: c, Cosine: 0.9}, {Key: b, Cosine: 0.5}, {Key: c, Cosine: 0.5}, {Key: a, Cosine: 0.1}}
	if diff := cmp.Diff(want, near); diff != "" {
		t.Error(diff)
	}
	given := []index.TextKey{c, a, c, b, a}
	if diff := cmp.Diff([]index.TextKey{a, b, c}, store.SortedKeys(given)); diff != "" {
		t.Error(diff)
	}
	if given[0] != c {
		t.Error("what was given has changed")
	}
}

func TestCheckCollection(t *testing.T) {
	for name, ok := range map[string]bool{"drawbridge_tools": true, "t1": true, "": false, "A": false, "a-b": false,
		`a"b`: false, "é": false} {
		if err := store.CheckCollection(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func BenchmarkDot(b *testing.B) {
	v := make([]float32, 384)
	for i := range v {
		v[i] = float32(i)
	}
	packed := store.PackVector(v)
	for b.Loop() {
		store.DotPacked(v, packed)
	}
}
