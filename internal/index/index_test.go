package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
)

func find(x *index.Index, question string, most int) []index.Hit {
	return x.Find(context.Background(), index.Query{Text: question, Limit: most})
}

// TestFindByMeaning asks in other words than the documents have: words alone find nothing, or something else.
func TestFindByMeaning(t *testing.T) {
	both, words := index.New(index.Options{}), index.New(index.Options{LexicalOnly: true})
	both.Update(desk(), nil)
	words.Update(desk(), nil)
	for _, tt := range []struct {
		question, first string
		byWords         bool
	}{
		{"list pull requests", "github__list_pull_requests", true},
		{"will it rain tomorrow", "weather__forecast", false},
		{"inform my colleagues by email", "mail__send", false},
	} {
		if got := ids(find(both, tt.question, 1)); !slices.Equal(got, []string{tt.first}) {
			t.Errorf("%q: %v, want %s", tt.question, find(both, tt.question, 3), tt.first)
		}
		if got := slices.Equal(ids(find(words, tt.question, 1)), []string{tt.first}); got != tt.byWords {
			t.Errorf("%q by words: %v", tt.question, got)
		}
	}
}

// TestWhatOnlyLiesNearComesBeforeWhatHardlyHasAWord has two tools with a word of the question, of which the second has
// hardly more than that.
func TestWhatOnlyLiesNearComesBeforeWhatHardlyHasAWord(t *testing.T) {
	x := index.New(index.Options{})
	x.Update([]index.Document{
		tool("photos", "remove_pictures", "Remove pictures"),
		tool("images", "delete", "Delete images"),
		tool("backup", "start",
			"Start the backup of a disk. What is on it stays: documents, tables, pictures, music, and what else there is"),
	}, nil)
	if got, want := ids(find(x, "remove pictures", 2)), []string{"photos__remove_pictures",
		"images__delete"}; !slices.Equal(got, want) {
		t.Errorf("%v", find(x, "remove pictures", 3))
	}
}

func TestFindSaysWhatEachArmMadeOfIt(t *testing.T) {
	x := index.New(index.Options{})
	x.Update(desk(), nil)
	hits := find(x, "read a file from the disk", 3)
	if best := hits[0]; best.ID != "fs__read_file" || best.Score != 1 || best.Words != 1 ||
		best.Meaning <= 0 || best.Far != 0 {
		t.Error(best)
	}
	all := x.Find(context.Background(), index.Query{Text: "read a file from the disk", Limit: 20,
		MinRelativeScore: 0.4})
	if len(all) == 0 || len(all) == x.Len() || all[len(all)-1].Score < 0.4 {
		t.Error(all)
	}
	for _, s := range []index.Query{{Text: "read", Limit: 0}, {Text: "read", Limit: -1}, {Limit: 5},
		{Text: "12345 ?", Limit: 5}} {
		if got := x.Find(context.Background(), s); len(got) != 0 {
			t.Errorf("%+v: %v", s, got)
		}
	}
	x.Update(nil, ids(find(x, "list read file weather mail issue search directory", 20)))
	if got := find(x, "file", 5); x.Len() == 0 && len(got) != 0 {
		t.Error(got)
	}
}

// TestFindKnowsItsOwnDocumentsOnly builds the same view in many ways, with documents that go again: the hits are the
// same, to the last bit of the scores.
func TestFindKnowsItsOwnDocumentsOnly(t *testing.T) {
	want := index.New(index.Options{})
	want.Update(desk(), nil)
	questions := []string{"list pull requests", "will it rain, and then tell my colleagues about it in a letter",
		"folder", "搜索关键词"}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		x, docs := index.New(index.Options{}), desk()
		r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		var hidden []string
		for i, d := range docs {
			h := tool("hidden", fmt.Sprint("list_folder", i), "list pull requests, and whether it will rain", "path")
			before := d
			before.Description = "something about rain"
			x.Update([]index.Document{h, before}, nil)
			x.Update([]index.Document{d}, hidden)
			hidden = []string{h.ID, "nobody"}
		}
		x.Update(nil, hidden)
		for _, q := range questions {
			if diff := cmp.Diff(find(want, q, 20), find(x, q, 20)); diff != "" {
				t.Fatalf("seed %d, %q: %s", seed, q, diff)
			}
		}
	}
}

type far func(question string, most int, among []index.TextKey) ([]index.Neighbor, error)

func (f far) Nearest(_ context.Context, question string, most int, among []index.TextKey) ([]index.Neighbor, error) {
	return f(question, most, among)
}

func TestFar(t *testing.T) {
	docs := desk()
	keys := map[index.TextKey]string{}
	for _, d := range docs {
		keys[d.TextKey()] = d.ID
	}
	plain := index.New(index.Options{})
	plain.Update(docs, nil)
	for _, tt := range []struct {
		name string
		far  far
		want string // "" is what is found without it
	}{
		{"it is sure of another", func(_ string, _ int, among []index.TextKey) ([]index.Neighbor, error) {
			var near []index.Neighbor
			for _, k := range among {
				cosine := float32(0.7)
				if keys[k] == "weather__forecast" {
					cosine = 0.9
				}
				near = append(near, index.Neighbor{Key: k, Cosine: cosine})
			}
			slices.SortFunc(near, func(a, b index.Neighbor) int { return cmpDown(a.Cosine, b.Cosine) })
			return near[:4], nil
		}, "weather__forecast"},
		{"it fails", func(string, int, []index.TextKey) ([]index.Neighbor, error) { return nil, errors.New("down") },
			""},
		{"it knows nothing", func(string, int, []index.TextKey) ([]index.Neighbor, error) { return nil, nil }, ""},
	} {
		x := index.New(index.Options{Remote: tt.far})
		x.Update(append(docs, tool("gone", "gone", "gone")), nil)
		x.Update(nil, []string{"gone__gone"})
		got := find(x, "storm", 5)
		if tt.want == "" {
			if diff := cmp.Diff(find(plain, "storm", 5), got); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		} else if got[0].ID != tt.want || got[0].Far != 1 || got[0].Meaning != 0 {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestLeast leaves out what lies too far from a question by its cosine, but for the best; what has no vector has no
// cosine.
func TestLeast(t *testing.T) {
	docs := []index.Document{tool("s", "storm_one", "storm"), tool("s", "storm_two", "storm"), tool("s", "storm_three",
		"storm"), tool("s", "rain", "rain")}
	keys := map[index.TextKey]string{}
	for _, d := range docs {
		keys[d.TextKey()] = d.ID
	}
	for _, tt := range []struct {
		least   float64
		cosines map[string]float32
		want    []string
	}{
		{0, map[string]float32{"s__storm_one": 0.5, "s__storm_two": 0.3, "s__rain": 0.6, "s__storm_three": 0.1},
			[]string{"s__storm_one", "s__storm_two", "s__storm_three", "s__rain"}},
		{-1, map[string]float32{"s__storm_one": 0.5, "s__storm_two": 0.3, "s__rain": 0.6, "s__storm_three": 0.1},
			[]string{"s__storm_one", "s__storm_two", "s__storm_three", "s__rain"}},
		{0.4, map[string]float32{"s__storm_one": 0.5, "s__storm_two": 0.3, "s__rain": 0.6, "s__storm_three": 0.1},
			[]string{"s__storm_one", "s__rain"}},
		{0.55, map[string]float32{"s__storm_one": 0.5, "s__storm_two": 0.3, "s__rain": 0.6, "s__storm_three": 0.1},
			[]string{"s__storm_one", "s__rain"}},
		{0.55, map[string]float32{"s__storm_one": 0.5, "s__storm_two": 0.3, "s__rain": 0.1}, []string{"s__storm_one",
			"s__storm_three"}},
		{0.99, map[string]float32{}, []string{"s__storm_one", "s__storm_two", "s__storm_three", "s__rain"}},
	} {
		x := index.New(index.Options{MinCosine: tt.least,
			Remote: far(func(_ string, most int, among []index.TextKey) (near []index.Neighbor, err error) {
				if tt.least > 0 && most < len(among) {
					t.Errorf("%v: asked for %d of %d", tt.least, most, len(among))
				}
				for _, k := range among {
					if cosine, ok := tt.cosines[keys[k]]; ok {
						near = append(near, index.Neighbor{Key: k, Cosine: cosine})
					}
				}
				slices.SortFunc(near, func(a, b index.Neighbor) int { return cmpDown(a.Cosine, b.Cosine) })
				return near[:min(len(near), most)], nil
			})})
		x.Update(docs, nil)
		if diff := cmp.Diff(tt.want, ids(find(x, "storm", 5))); diff != "" {
			t.Errorf("%v, %v: %s\n%+v", tt.least, tt.cosines, diff, find(x, "storm", 5))
		}
	}
}

// TestALongQuestionIsCut has somebody ask a book: what others are asked, and may remember, is its beginning.
func TestALongQuestionIsCut(t *testing.T) {
	for _, before := range []string{"", "x"} {
		var asked []string
		x := index.New(index.Options{
			Remote: far(func(question string, _ int, _ []index.TextKey) ([]index.Neighbor, error) {
				asked = append(asked, question)
				return nil, nil
			}),
			Reranker: index.NewHitReranker(fakeReranker(func(_ context.Context, question string,
				texts []string) ([]float64, error) {
				asked = append(asked, question)
				return make([]float64, len(texts)), nil
			}), index.HitRerankerOptions{}),
		})
		x.Update(desk(), nil)
		find(x, before+"read a file "+strings.Repeat("ü", 1<<20), 5)
		if len(asked) != 2 {
			t.Errorf("asked %d questions", len(asked))
		}
		for _, question := range asked {
			if len(question) > 8<<10 || len(question) < 8<<10-3 || !utf8.ValidString(question) {
				t.Errorf("asked %d bytes, …%q", len(question), question[len(question)-5:])
			}
		}
	}
}

func cmpDown(a, b float32) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// TestUpdateWhileFarIsSlow holds an answer from afar back until documents have changed: nothing waits for it but the
// question.
func TestUpdateWhileFarIsSlow(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	x := index.New(index.Options{Remote: far(func(_ string, _ int, among []index.TextKey) ([]index.Neighbor, error) {
		close(asked)
		<-answer
		return []index.Neighbor{{Key: among[0], Cosine: 1}}, nil
	})})
	x.Update(desk(), nil)
	found := make(chan []index.Hit)
	go func() { found <- find(x, "forecast", 3) }()
	<-asked
	x.Update(nil, ids(findWords("repository")))
	close(answer)
	if hits := <-found; !slices.Contains(ids(hits), "weather__forecast") {
		t.Error(hits)
	}
}

func findWords(question string) []index.Hit {
	x := index.NewLexicalIndex()
	x.Update(desk(), nil)
	return x.Search(question, 10)
}
