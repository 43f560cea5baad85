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
	// Words, Meaning and Far say what each arm of an Index made of it, by its own best: words, the built-in encoder, and vectors
	// made elsewhere. 0 is nothing, or an arm that was not asked.
	Words, Meaning, Far float64
}

// A search is the scores of one question while they are made.
type search struct {
	// whole has a score for each document, parts one for each part of the question.
	whole []float64
	parts [maxClauses][]float64
	// touched are the documents that have a score, in no order.
	touched []uint32
}

// A wanted term is one of a question: what it counts, and in which parts it stands, a bit for each.
type wanted struct {
	term   string
	weight float64
	parts  uint8
}

// Search gives at most so many documents that share a word with the question, the best first; of equals the one whose ID
// comes first.
func (x *Lexical) Search(question string, most int) []Hit {
	asked, parts := x.read(question)
	x.mu.RLock()
	if x.norms == nil {
		x.mu.RUnlock()
		x.mu.Lock()
		x.norm()
		x.mu.Unlock()
		x.mu.RLock()
	}
	defer x.mu.RUnlock()
	s, _ := x.scratch.Get().(*search)
	if s == nil {
		s = &search{}
	}
	defer x.scratch.Put(s)
	s.reset(len(x.docs), parts)
	for _, w := range asked {
		x.add(s, w)
	}
	return x.best(s, parts, most)
}

// read gives the terms of a question, and how many parts of it are ranked apart.
func (x *Lexical) read(question string) (asked []wanted, parts int) {
	if len(question) > maxQuery {
		question = question[:maxQuery]
	}
	all := words.Split(question)
	kept := x.stops.Drop(all, leastWords)
	by := map[string]int{}
	add := func(list []string, bit uint8) {
		eachTerm(list, func(term string, of sort) {
			i, ok := by[term]
			if !ok {
				if bit != 0 {
					return // a part counts what the whole does
				}
				i = len(asked)
				by[term] = i
				asked = append(asked, wanted{term: term, weight: [...]float64{1, x.weights.surface, x.weights.pair}[of]})
			}
			asked[i].parts |= bit
		})
	}
	add(kept, 0)
	clauses := words.Clauses(question, x.stops, leastClause)
	if len(clauses) < 2 || len(clauses) > maxClauses {
		return asked, 0
	}
	for i, clause := range clauses {
		add(x.stops.Drop(words.Split(clause), leastWords), 1<<i)
	}
	return asked, len(clauses)
}

// norm makes the norms. The caller has locked mu.
func (x *Lexical) norm() {
	if x.norms != nil {
		return
	}
	n := float64(max(len(x.byID), 1))
	x.norms = make([][fields]float32, len(x.docs))
	for i := range x.docs {
		for f, count := range x.docs[i].words {
			average := max(float64(x.total[f])/n, 1)
			b := x.weights.length[f]
			x.norms[i][f] = float32(x.weights.field[f] / (1 - b + b*float64(count)/average))
		}
	}
}

// add adds what a term says of the documents that have it.
func (x *Lexical) add(s *search, w wanted) {
	list := x.terms[w.term]
	if len(list) == 0 {
		return
	}
	n, df := float64(len(x.byID)), float64(len(list))
	rare := w.weight * math.Log(1+(n-df+0.5)/(df+0.5))
	k := x.weights.saturation
	for i := range list {
		p := &list[i]
		norm := &x.norms[p.doc]
		var tf float32
		for f, times := range p.tf {
			tf += float32(times) * norm[f]
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
		hits = keep(hits, Hit{ID: x.docs[doc].ID, Score: score + x.weights.clause*clause}, most)
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
	s.touched = s.touched[:0]
	s.whole = zeroed(s.whole, docs)
	for part := range parts {
		s.parts[part] = zeroed(s.parts[part], docs)
	}
}

func zeroed(list []float64, n int) []float64 {
	if cap(list) < n {
		return make([]float64, n)
	}
	list = list[:n]
	clear(list)
	return list
}
