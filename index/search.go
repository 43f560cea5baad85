package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/index/words"
)

// A Hit is a document that was found.
type Hit struct {
	ID string
	// Score is how well it answers: only to be compared with those of the same question, of which the best is 1.
	Score float64
}

// A search is the scores of one question while they are made.
type search struct {
	asked []wanted
	by    map[uint64]int // where each term stands in asked
	// whole has a score for each document, parts one for each part of the question. All are 0 between two searches.
	whole []float64
	parts [maxClauses][]float64
	// touched are the documents that have a score, in no order.
	touched []uint32
}

// A wanted term is one of a question: the documents that have it, what it counts, and in which parts of the question it
// stands, a bit for each.
type wanted struct {
	list   []posting
	weight float64
	parts  uint8
}

// A question is its words, without those that say little, and those of each of its parts.
type question struct {
	words []string
	parts [][]string
}

// Search gives at most so many documents that share a word with the question, the best first; of equals the one whose ID
// comes first.
func (x *Lexical) Search(text string, most int) []Hit {
	q := x.read(text)
	s, _ := x.scratch.Get().(*search)
	if s == nil {
		s = &search{by: map[uint64]int{}}
	}
	defer x.scratch.Put(s)
	x.mu.RLock()
	defer x.mu.RUnlock()
	s.reset(len(x.docs), len(q.parts))
	x.want(s, q.words, 0)
	for i, part := range q.parts {
		x.want(s, part, 1<<i)
	}
	scale := x.scale()
	for _, w := range s.asked {
		x.add(s, w, &scale)
	}
	return x.best(s, len(q.parts), most)
}

// read reads a question. One that asks for a single thing has no parts.
func (x *Lexical) read(text string) question {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	q := question{words: x.stops.Drop(words.Split(text), leastWords)}
	clauses := words.Clauses(text, x.stops, leastClause)
	if len(clauses) < 2 || len(clauses) > maxClauses {
		return q
	}
	for _, clause := range clauses {
		q.parts = append(q.parts, x.stops.Drop(words.Split(clause), leastWords))
	}
	return q
}

// The sorts of terms, which are told apart in the keys of search.by. Those of pairs are two places, each less than 1<<31.
const (
	keyStem    = 1 << 63
	keySurface = 1<<63 | 1<<62
)

// want has the terms of words count: in the whole of a question, or, with a bit, in a part of it.
func (x *Lexical) want(s *search, all []string, bit uint8) {
	v := &x.terms
	const none = 1<<32 - 1
	before := uint32(none)
	for _, word := range all {
		at, known := v.words.at[word]
		stem := uint32(none)
		if known {
			stem = v.words.terms[at].stem
		} else if on, ok := v.stems.at[words.Stem(word)]; ok {
			stem = on
		}
		if stem != none {
			s.want(keyStem|uint64(stem), v.stems.terms[stem].list, 1, bit)
		}
		if known {
			s.want(keySurface|uint64(at), v.words.terms[at].list, x.weights.surface, bit)
		}
		if stem != none && before != none {
			beside := pair(before, stem)
			s.want(beside, v.pairs[beside], x.weights.pair, bit)
		}
		before = stem
	}
}

// want has one term count. A part counts nothing that the whole does not.
func (s *search) want(key uint64, list []posting, weight float64, bit uint8) {
	if len(list) == 0 {
		return
	}
	i, ok := s.by[key]
	if !ok && bit == 0 {
		i = len(s.asked)
		s.by[key] = i
		s.asked = append(s.asked, wanted{list: list, weight: weight})
	} else if !ok {
		return
	}
	s.asked[i].parts |= bit
}

// A scale is what an occurrence in a field counts: 1/(base + slope·length).
type scale [fields]struct{ base, slope float32 }

// scale gives what occurrences count among the documents as they are.
func (x *Lexical) scale() (s scale) {
	n := float64(max(len(x.byID), 1))
	for f := range s {
		average := max(float64(x.total[f])/n, 1)
		w, b := x.weights.field[f], x.weights.length[f]
		s[f].base, s[f].slope = float32((1-b)/w), float32(b/(w*average))
	}
	return s
}

// add adds what a term says of the documents that have it.
func (x *Lexical) add(s *search, w wanted, scale *scale) {
	n, df := float64(len(x.byID)), float64(len(w.list))
	rare := w.weight * math.Log(1+(n-df+0.5)/(df+0.5))
	k := x.weights.saturation
	for _, p := range w.list {
		length := &x.docs[p.doc].length
		var tf float32
		for f, times := 0, p.times; times != 0; f, times = f+1, times>>timesBits {
			if n := times & timesMask; n != 0 {
				tf += float32(n) / (scale[f].base + scale[f].slope*float32(length[f]))
			}
		}
		score := rare * float64(tf) * (k + 1) / (k + float64(tf))
		if s.whole[p.doc] == 0 {
			s.touched = append(s.touched, p.doc)
		}
		s.whole[p.doc] += score
		for part, bits := 0, w.parts; bits != 0; part, bits = part+1, bits>>1 {
			if bits&1 != 0 {
				s.parts[part][p.doc] += score
			}
		}
	}
}

// best gives the documents with the highest scores.
func (x *Lexical) best(s *search, parts, most int) []Hit {
	top := highest(s.whole, s.touched)
	var tops [maxClauses]float64
	for part := range parts {
		tops[part] = highest(s.parts[part], s.touched)
	}
	hits := make([]Hit, 0, most+1)
	for _, doc := range s.touched {
		score, clause := s.whole[doc]/top, 0.0
		for part := range parts {
			if tops[part] > 0 {
				clause = max(clause, s.parts[part][doc]/tops[part])
			}
		}
		hits = keep(hits, Hit{x.docs[doc].id, score + x.weights.clause*clause}, most)
	}
	for i := len(hits) - 1; i >= 0; i-- {
		hits[i].Score /= hits[0].Score
	}
	return hits
}

// keep puts a hit in its place among at most so many, which are in order.
func keep(hits []Hit, h Hit, most int) []Hit {
	if n := len(hits); n == most && (n == 0 || before(hits[n-1], h) < 0) {
		return hits
	}
	i, _ := slices.BinarySearchFunc(hits, h, before)
	hits = slices.Insert(hits, i, h)
	return hits[:min(len(hits), most)]
}

// before orders hits: the higher score first, of equals the ID that comes first.
func before(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}

func highest(scores []float64, of []uint32) float64 {
	var most float64
	for _, doc := range of {
		most = max(most, scores[doc])
	}
	return most
}

// reset makes a search ready for so many documents and parts.
func (s *search) reset(docs, parts int) {
	for _, doc := range s.touched {
		s.whole[doc] = 0
		for _, scores := range s.parts {
			if int(doc) < len(scores) {
				scores[doc] = 0
			}
		}
	}
	s.touched, s.asked = s.touched[:0], s.asked[:0]
	clear(s.by)
	s.whole = grown(s.whole, docs)
	for part := range parts {
		s.parts[part] = grown(s.parts[part], docs)
	}
}

func grown(list []float64, n int) []float64 {
	if len(list) < n {
		return make([]float64, n+n/8)
	}
	return list
}
