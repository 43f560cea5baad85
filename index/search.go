package index

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
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
	asked  []wanted
	order  []uint64         // see rarest
	by     map[uint64]int   // where each term stands in asked
	words  map[string]int32 // where each word stands in asking
	asking []asking
	places []int32 // see want
	stems  []bool  // those that are asked for as they are, by their place; between two searches there are none
	// scores has a row for each document: what the whole of the question makes of it, and each part. Between two searches all
	// are 0.
	scores []float32
	row    int
	// touched are the documents that have a score, in no order.
	touched []uint32
	joined  []float32 // see join
}

// Search gives at most so many documents that share a word with the question, the best first; of equals the one whose ID
// comes first.
func (x *Lexical) Search(text string, most int) []Hit {
	if most <= 0 {
		return nil
	}
	q := x.read(text)
	s, _ := x.scratch.Get().(*search)
	if s == nil {
		s = &search{by: map[uint64]int{}, words: map[string]int32{}}
	}
	defer x.scratch.Put(s)
	x.mu.RLock()
	defer x.mu.RUnlock()
	s.reset(len(x.docs), 1+len(q.parts), len(x.terms.stems.terms))
	x.want(s, q.words, 0)
	for i, part := range q.parts {
		x.want(s, part, 1<<i)
	}
	for _, at := range s.rarest() {
		x.add(s, &s.asked[at])
	}
	return x.best(s, most)
}

// rarest gives the places of the terms in asked, the rarest first; of those that as many documents have, the one that was asked
// for first.
func (s *search) rarest() []uint64 {
	const placeBits = 32
	s.order = s.order[:0]
	for i := range s.asked {
		s.order = append(s.order, uint64(len(s.asked[i].list))<<placeBits|uint64(i))
	}
	slices.Sort(s.order)
	for i := range s.order {
		s.order[i] &= 1<<placeBits - 1
	}
	return s.order
}

// enough is how many documents have a score when terms, the rarest of which come first, give none to others any more.
const enough = 1000

// add adds what a term says of the documents that have it.
func (x *Lexical) add(s *search, w *wanted) {
	k := float32(x.weights.saturation)
	most := float32(w.weight*x.rare(len(w.list))) * (k + 1)
	full := len(s.touched) >= enough
	for _, p := range w.list {
		scores := s.scores[int(p.doc)*s.row:][:s.row]
		if scores[0] == 0 {
			if full {
				continue
			}
			s.touched = append(s.touched, p.doc)
		}
		var tf float32
		length := &x.lengths[p.doc]
		for times := p.times; times != 0; { // from one field that has it to the next
			f := bits.TrailingZeros32(times) / timesBits
			n := times >> (timesBits * f) & timesMask
			tf += float32(n) * x.scale.of(f, length[f])
			times &^= timesMask << (timesBits * f)
		}
		score := most * tf / (k + tf)
		scores[0] += score
		for parts := w.parts; parts != 0; parts &= parts - 1 {
			scores[1+bits.TrailingZeros8(parts)] += score
		}
	}
}

// best gives the documents with the highest scores.
func (x *Lexical) best(s *search, most int) []Hit {
	var tops [1 + maxClauses]float32
	for _, doc := range s.touched {
		for part, score := range s.scores[int(doc)*s.row:][:s.row] {
			tops[part] = max(tops[part], score)
		}
	}
	for part, top := range tops {
		if top > 0 { // a part that nothing answers counts nothing
			tops[part] = 1 / top
		}
	}
	// Names are looked at where they can matter: what is less than the last of the best by more than a name counts stays out.
	// Those that are among the best without a name come first, so that few of the others are looked at.
	least := float64(s.join(tops[:], float32(x.weights.clause), most))
	hits := make([]Hit, 0, most+1)
	for _, doc := range s.touched {
		if score := float64(s.scores[int(doc)*s.row]); score >= least {
			hits = append(hits, Hit{ID: x.docs[doc].id, Score: score + x.weights.named*x.named(s, doc)})
		}
	}
	slices.SortFunc(hits, before)
	hits = hits[:min(len(hits), most)]
	for _, doc := range s.touched {
		score := float64(s.scores[int(doc)*s.row])
		if score < least && score >= least-x.weights.named && (len(hits) < most || score >= hits[most-1].Score-x.weights.named) {
			hits = keep(hits, Hit{ID: x.docs[doc].id, Score: score + x.weights.named*x.named(s, doc)}, most)
		}
	}
	for i := len(hits) - 1; i >= 0; i-- {
		hits[i].Score /= hits[0].Score
	}
	return hits
}

// join makes one score of those that a document has, in the place of that for the whole question, and gives what so many of
// them reach, or a little less; 0 where there are fewer.
func (s *search) join(tops []float32, clauses float32, most int) float32 {
	s.joined = s.joined[:0]
	for _, doc := range s.touched {
		scores := s.scores[int(doc)*s.row:][:s.row]
		var clause float32
		for part := 1; part < len(scores); part++ {
			clause = max(clause, scores[part]*tops[part])
		}
		scores[0] = scores[0]*tops[0] + clauses*clause
		s.joined = append(s.joined, scores[0]/(1+clauses))
	}
	return nth(s.joined, most) * (1 + clauses)
}

// named is how much of a document's name is asked for: from nothing to 1, rare words counting more.
func (x *Lexical) named(s *search, doc uint32) float64 {
	words, some := x.docs[doc].words[:x.lengths[doc][fieldName]], false
	for _, word := range words {
		some = some || s.stems[x.terms.words.terms[word].stem]
	}
	if !some {
		return 0
	}
	var asked, all float64
	for _, word := range words {
		stem := x.terms.words.terms[word].stem
		rare := x.rare(len(x.terms.stems.terms[stem].list))
		all += rare
		if s.stems[stem] {
			asked += rare
		}
	}
	return asked / all
}

// rare is what a term counts that so many documents have.
func (x *Lexical) rare(documents int) float64 {
	if documents < len(x.scale.rare) {
		return x.scale.rare[documents]
	}
	return idf(len(x.byID), documents)
}

// idf is how rare a term is that some of all documents have, as in BM25.
func idf(all, some int) float64 {
	n, df := float64(all), float64(some)
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// keep puts a hit in its place among at most so many, which are in order.
func keep(hits []Hit, h Hit, most int) []Hit {
	if n := len(hits); n == most && hits[n-1].Score > h.Score {
		return hits
	}
	i, _ := slices.BinarySearchFunc(hits, h, before)
	if i == most {
		return hits
	}
	hits = slices.Insert(hits, i, h)
	return hits[:min(len(hits), most)]
}

// before orders hits: the higher score first, of equals the ID that comes first.
func before(a, b Hit) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	return cmp.Compare(a.ID, b.ID)
}

// reset makes a search ready for so many documents, with a row of so many scores each, and so many stems.
func (s *search) reset(docs, row, stems int) {
	for _, doc := range s.touched {
		clear(s.scores[int(doc)*s.row:][:s.row])
	}
	s.touched, s.asked, s.asking = s.touched[:0], s.asked[:0], s.asking[:0]
	clear(s.by)
	clear(s.words)
	if clear(s.stems); len(s.stems) < stems {
		s.stems = make([]bool, stems+stems/8)
	}
	if s.row = row; len(s.scores) < docs*row {
		s.scores = make([]float32, docs*row+docs/8)
	}
}
