package index_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
)

func vector(e *index.WordEncoder, text string) [index.EncoderDims]float32 {
	var s index.VectorSum
	e.AddWords(&s, index.SplitWords(text), 1)
	return s.UnitVector()
}

func cosine(a, b [index.EncoderDims]float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestWordsOfOneMeaningLieNear(t *testing.T) {
	e := index.BuiltInEncoder()
	for _, tt := range []struct{ text, near, far string }{
		{"remove a file", "delete documents", "play music"},
		{"weather forecast", "rain and temperature", "invoice"},
		{"send an e-mail", "mail a message", "rotate the picture"},
		{"list pull requests", "listPullRequests", "weather"},
	} {
		v := vector(e, tt.text)
		if near, far := cosine(v, vector(e, tt.near)), cosine(v, vector(e, tt.far)); near < far+0.1 {
			t.Errorf("%q: %.2f to %q, %.2f to %q", tt.text, near, tt.near, far, tt.far)
		}
	}
}

// TestTheSameEverywhere holds vectors to the bit: another machine, or another version of what splits words, gives
// these.
func TestTheSameEverywhere(t *testing.T) {
	e := index.BuiltInEncoder()
	h := sha256.New()
	for _, text := range []string{"list pull requests", "getHTTPStatus of a xylofrobnicator",
		"I want to read a file, and then mail it to Ada's office", "", "12 搜索"} {
		for _, x := range vector(e, text) {
			var b [4]byte
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
			h.Write(b[:])
		}
	}
	const want = "1da08951f87c5b3c"
	if got := hex.EncodeToString(h.Sum(nil)[:8]); got != want {
		t.Errorf("%s, want %s: after the weights changed, say so here", got, want)
	}
}

func TestUnit(t *testing.T) {
	e := index.BuiltInEncoder()
	for text, want := range map[string]float64{"read a file": 1, "zzqqy": 1, "": 0, "12 搜索 !": 0} {
		if v := vector(e, text); math.Abs(cosine(v, v)-want) > 1e-5 {
			t.Errorf("%q has the length %f", text, cosine(v, v))
		}
	}
	var twice, once index.VectorSum
	e.AddWords(&twice, index.SplitWords("read a xylofile"), 2)
	e.AddWords(&once, index.SplitWords("read a xylofile"), 1)
	e.AddWords(&once, index.SplitWords("xylofile a read read xylofile"), 1)
	if diff := cmp.Diff(twice, once); diff != "" {
		t.Error(diff)
	}
}

// TestManyWords adds more words than are added up at once.
func TestManyWords(t *testing.T) {
	e := index.BuiltInEncoder()
	var words []string
	for _, a := range "abcdefghijklmnopqrstuvwxyz" {
		for _, b := range "aeiouy" {
			for _, c := range "bdgmnprst" {
				words = append(words, string([]rune{a, b, c}))
			}
		}
	}
	var all, each index.VectorSum
	e.AddWords(&all, words, 3)
	for _, word := range words {
		e.AddWords(&each, []string{word}, 3)
	}
	if diff := cmp.Diff(each, all); diff != "" || all == (index.VectorSum{}) {
		t.Error(diff)
	}
}

func TestWords(t *testing.T) {
	want := []string{"list", "pull", "requests", "of", "x"}
	if diff := cmp.Diff(want, index.EncoderWords("list_pull_requests 42 搜索 ListPull's of é x")); diff != "" {
		t.Error(diff)
	}
	if got := index.EncoderWords(strings.Repeat("word", 1<<20)); len(got) > 1 {
		t.Error(len(got))
	}
}

func small(words string, count, pieces byte) string {
	head := []byte{index.EncoderDims, 0, 0, 0, pieces, 0, 0, 0, count, 0, 0, 0, byte(len(words)), 0, 0, 0}
	return "encoder1" + string(head) + words + strings.Repeat("\x01", (int(count)+int(pieces))*index.EncoderDims)
}

func TestRead(t *testing.T) {
	good := small("a\nb", 2, 3)
	if _, err := index.ReadEncoder(good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if _, err := index.ReadEncoder(good[:i]); err == nil {
			t.Errorf("%d of %d bytes are read", i, len(good))
		}
	}
	for _, bad := range []string{good + "x", "encoder2" + good[8:], small("a\nb", 3, 3), small("a\nb", 2, 0)} {
		if _, err := index.ReadEncoder(bad); err == nil {
			t.Errorf("%.40q is read", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small("a\nb", 2, 3), "a b c")
	f.Add("encoder1", "a")
	f.Fuzz(func(t *testing.T, weights, text string) {
		e, err := index.ReadEncoder(weights)
		if err != nil {
			return
		}
		v := vector(e, text)
		if slices.ContainsFunc(v[:], func(x float32) bool { return x != x }) {
			t.Errorf("%q: %v", text, v)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	e := index.BuiltInEncoder()
	text := strings.Repeat(
		"Find the photo that Ann shared with me, then mail it to all users and delete the old folder. ", 2)
	for b.Loop() {
		vector(e, text)
	}
}

func BenchmarkRead(b *testing.B) {
	weights := small(strings.Repeat("a", 20)+"\nb", 2, 3)
	for b.Loop() {
		if _, err := index.ReadEncoder(weights); err != nil {
			b.Fatal(err)
		}
	}
}
