package main

import (
	"math/rand/v2"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// pair makes a question and an answer from one entry, and returns their words. The question is a sentence, the
// description of a parameter, or the name. The answer consists of other parts of the entry, chosen at random. A
// sentence in the question is not in the answer.
func (l *lesson) pair(c *cut, r *rand.Rand) (asked, offered []string) {
	taken := -1 // the index of the sentence in the question
	switch n := len(c.sentences); {
	case n > 0 && (len(c.hints) == 0 || r.Float64() < 0.8):
		taken = 0
		if n > 1 && r.Float64() < 0.3 {
			taken = 1 + r.IntN(n-1)
		}
		asked, offered = c.sentences[taken], c.name
	case len(c.hints) > 0:
		asked, offered = c.hints[r.IntN(len(c.hints))], c.name
	default:
		asked = c.name
	}
	offered = append([]string{}, offered...)
	if r.Float64() < 0.7 {
		offered = append(offered, c.server...)
	}
	if r.Float64() < 0.6 {
		offered = append(offered, c.params...)
	}
	if r.Float64() < 0.6 {
		for i, s := range c.sentences {
			if i != taken {
				offered = append(offered, s...)
			}
		}
	}
	if r.Float64() < 0.3 {
		asked = append(append([]string{}, asked...), l.dressings[r.IntN(len(l.dressings))]...)
	}
	return asked, offered
}

// A bag is a weighted sum of rows of the model. count contains the weight of each row.
type bag struct {
	rows  []int32
	count []float32
}

// bag returns the rows of the distinct words. A word without a row is replaced by the rows of its pieces. Some words
// with a row are replaced too, at random, so that the rows of pieces are also trained.
func (l *lesson) bag(words []string, r *rand.Rand) bag {
	var b bag
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] {
			continue
		}
		seen[w] = true
		if at, ok := l.rows[w]; ok && r.Float64() >= hidden {
			b.rows, b.count = append(b.rows, at), append(b.count, 1)
			continue
		}
		slots := l.pieces(w)
		for _, p := range slots {
			b.rows, b.count = append(b.rows, p), append(b.count, 1/float32(len(slots)))
		}
	}
	return b
}

// pieces returns the rows of the pieces of a word, see index.WordPieces.
func (l *lesson) pieces(w string) []int32 {
	rows, ok := l.slots[w]
	if !ok {
		for _, p := range index.WordPieces(w, pieceRows) {
			rows = append(rows, int32(len(l.names)+int(p)))
		}
		l.slots[w] = rows
	}
	return rows
}
