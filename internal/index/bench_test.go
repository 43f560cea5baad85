package index_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// rows reads the rows of a file of the sample, of each corpus.
func rows[T any](b *testing.B, name string) (all []T) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "retrieval", "*", name))
	if err != nil || len(files) == 0 {
		b.Fatal(len(files), err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var row T
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				b.Fatal(err)
			}
			all = append(all, row)
		}
	}
	return all
}

// many gives so many tools: those of the sample, and again under other names.
func many(b *testing.B, n int) (all []index.Document) {
	b.Helper()
	type tool struct {
		ID, Server, Name, Description string
		InputSchema                   json.RawMessage
	}
	sample := rows[tool](b, "tools.jsonl")
	for i := range n {
		t, copies := sample[i%len(sample)], i/len(sample)
		other := fmt.Sprint("c", copies)
		all = append(all, index.Document{ID: t.ID + other, Server: t.Server + other, Name: t.Name + "_" + other,
			Description: t.Description, Schema: t.InputSchema})
	}
	return all
}

var sizes = []int{1_500, 10_000, 100_000}

// eachArm benchmarks ranking by words and by all that is built in, with decks of each size.
func eachArm(b *testing.B, do func(b *testing.B, x *index.Index, tools []index.Document)) {
	for _, n := range sizes {
		for arm, words := range map[string]bool{"words": true, "both": false} {
			b.Run(fmt.Sprint(n, "/", arm), func(b *testing.B) {
				do(b, index.New(index.Options{LexicalOnly: words}), many(b, n))
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	eachArm(b, func(b *testing.B, x *index.Index, tools []index.Document) {
		for b.Loop() {
			x.Update(tools, nil)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	questions := rows[struct{ Query string }](b, "queries.jsonl")
	eachArm(b, func(b *testing.B, x *index.Index, tools []index.Document) {
		x.Update(tools, nil)
		for i := 0; b.Loop(); i++ {
			x.Find(b.Context(), index.Query{Text: questions[i%len(questions)].Query, Limit: 20})
		}
	})
}

func BenchmarkChange(b *testing.B) {
	eachArm(b, func(b *testing.B, x *index.Index, tools []index.Document) {
		x.Update(tools, nil)
		for i := 0; b.Loop(); i++ {
			t := tools[i*7919%len(tools)]
			t.Description += fmt.Sprint(" Changed ", i)
			x.Update([]index.Document{t}, nil)
		}
	})
}
