package main

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// mostWords is the maximum number of words that have a row of their own, and so their own vector. Other words are
// composed of pieces.
const mostWords = 28_000

// A lesson contains the training data: the entries split into words, and the index of each word's row in the model.
type lesson struct {
	names     []string         // the words with a row of their own, in the order of the rows
	rows      map[string]int32 // the row of each word in names
	count     map[string]int   // the number of entries that contain a word
	entries   []cut
	dressings [][]string
	slots     map[string][]int32 // cache of pieces: the rows of the pieces of a word
}

// A cut is an entry split into words.
type cut struct {
	server, name, params []string
	sentences, hints     [][]string
	title                string // the words of the name, for comparison
}

func cutUp(e *entry) cut {
	c := cut{server: index.EncoderWords(e.Server), name: index.EncoderWords(e.Name),
		params: index.EncoderWords(strings.Join(e.Params, " "))}
	c.title = strings.Join(c.name, " ")
	c.sentences = wordsOfEach(sentences(e.Text), 2)
	c.hints = wordsOfEach(e.Hints, 3)
	return c
}

// wordsOfEach returns the words of each of the first six texts. It omits texts with fewer than least words.
func wordsOfEach(texts []string, least int) [][]string {
	var out [][]string
	for _, text := range texts[:min(len(texts), 6)] {
		if ws := index.EncoderWords(text); len(ws) >= least {
			out = append(out, ws)
		}
	}
	return out
}

func newLesson(all []entry, g *general) *lesson {
	l := &lesson{rows: map[string]int32{}, count: map[string]int{}, slots: map[string][]int32{}}
	for i := range all {
		c := cutUp(&all[i])
		l.entries = append(l.entries, c)
		seen := map[string]bool{}
		for _, ws := range slices.Concat([][]string{c.server, c.name, c.params}, c.sentences, c.hints) {
			for _, w := range ws {
				if !seen[w] {
					seen[w] = true
					l.count[w]++
				}
			}
		}
	}
	for _, d := range dressings {
		l.dressings = append(l.dressings, index.EncoderWords(d))
	}
	l.choose(g)
	return l
}

// choose determines the words that have a row of their own. These are the most frequent words, by their number of
// entries and their rank in general English.
func (l *lesson) choose(g *general) {
	worth := map[string]float64{}
	for w, n := range l.count {
		worth[w] = float64(n)
	}
	for w, rank := range g.rank {
		worth[w] += 2e5 / float64(rank+100)
	}
	all := slices.SortedFunc(maps.Keys(worth), func(a, b string) int {
		return cmp.Or(cmp.Compare(worth[b], worth[a]), cmp.Compare(a, b))
	})
	all = slices.DeleteFunc(all, func(w string) bool { return len(w) < 2 })
	l.names = slices.Sorted(slices.Values(all[:min(len(all), mostWords)]))
	for i, w := range l.names {
		l.rows[w] = int32(i)
	}
}

// begin returns the model before training. The row of a word is its general word vector, scaled down if the word is
// frequent (SIF; Arora, Liang, Ma 2017). Words without a general vector, and pieces, get random vectors.
func (l *lesson) begin(g *general) *model {
	const (
		frequent = 1e-3
		noise    = 0.02
		unknown  = 0.07
		piece    = 0.05
	)
	m := newModel(len(l.names) + pieceRows)
	r := rand.New(rand.NewPCG(3, 4))
	for i, w := range l.names {
		v := row(m.rows, int32(i))
		known := g.vectors[w]
		for d := range v {
			v[d] = float32(r.NormFloat64() * noise)
			if known == nil {
				v[d] += float32(r.NormFloat64() * unknown)
			} else if d < len(known) {
				v[d] += known[d]
			}
		}
		often := float64(l.count[w]) / float64(len(l.entries)) / 10
		if rank, ok := g.rank[w]; ok {
			often = max(often, 0.08/float64(rank+1))
		}
		for d := range v {
			v[d] *= float32(frequent / (frequent + often))
		}
	}
	pieces := m.rows[len(l.names)*dims : (len(l.names)+pieceRows)*dims]
	for i := range pieces {
		pieces[i] = float32(r.NormFloat64() * piece)
	}
	return m
}

// dressings are phrases that users add to requests. They contain no information about the wanted tool. Some questions
// are trained with such a phrase.
var dressings = []string{
	"I want to", "Can you help me with this please", "I would like to know", "Could you please", "I need to",
	"Please help me find",
	"Show me", "Tell me about", "What is the", "How do I", "I am looking for some information",
	"Give me the details of",
	"I am planning something with my friends and family next week", "My company is working on a project",
	"for my research paper",
	"Is there a way to", "Thanks for your help", "Hello, I have a question", "Additionally, provide me with",
	"I'm curious about",
}
