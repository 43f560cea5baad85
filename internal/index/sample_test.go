package index_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

type sampleTool struct {
	ID, Server, Name, Title, Description string
	InputSchema                          json.RawMessage `json:"inputSchema"`
}

type sampleQuery struct {
	ID, Query string
	Gold      []string
	Groups    [][]string
}

// TestMeaningHelps ranks the sample in testdata/retrieval with and without the encoder: all together it finds more,
// and on no set of tools much less: one question of the twenty counts five.
func TestMeaningHelps(t *testing.T) {
	dirs, err := filepath.Glob("../testdata/retrieval/*/tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Skip("no sample")
	}
	var all float64
	for _, path := range dirs {
		dir := filepath.Dir(path)
		words, both := index.New(index.Options{LexicalOnly: true}), index.New(index.Options{})
		var docs []index.Document
		for _, d := range sample[sampleTool](t, path) {
			docs = append(docs, index.Document{ID: d.ID, Server: d.Server, Name: d.Name, Title: d.Title,
				Description: d.Description, Schema: d.InputSchema})
		}
		words.Update(docs, nil)
		both.Update(docs, nil)
		queries := sample[sampleQuery](t, filepath.Join(dir, "queries.jsonl"))
		without, with := ndcg(words, queries), ndcg(both, queries)
		t.Logf("%s: %.1f by words, %.1f by both", filepath.Base(dir), without, with)
		if with < without-4 {
			t.Errorf("%s: %.1f by words, %.1f by both", filepath.Base(dir), without, with)
		}
		all += with - without
	}
	if all < 0 {
		t.Errorf("%.1f lost", all)
	}
}

// sample reads a file with a row a line.
func sample[T any](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<22)
	for s.Scan() {
		var row T
		if err := json.Unmarshal(s.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

// ndcg is nDCG@10 in percent, the mean of all queries.
func ndcg(x *index.Index, queries []sampleQuery) float64 {
	var sum float64
	for _, q := range queries {
		place := map[string]int{}
		for i, h := range x.Find(context.Background(), index.Query{Text: q.Query, Limit: 10}) {
			place[h.ID] = i + 1
		}
		groups := q.Groups
		for _, id := range q.Gold {
			if len(q.Groups) == 0 {
				groups = append(groups, []string{id})
			}
		}
		var got, ideal float64
		for i, group := range groups {
			best := 0
			for _, id := range group {
				if p := place[id]; p > 0 && (best == 0 || p < best) {
					best = p
				}
			}
			if best > 0 {
				got += 1 / math.Log2(float64(best)+1)
			}
			if i < 10 {
				ideal += 1 / math.Log2(float64(i)+2)
			}
		}
		sum += got / ideal
	}
	return 100 * sum / float64(len(queries))
}
