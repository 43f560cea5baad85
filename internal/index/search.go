package index

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A Hit is a document that was found, with its scores.
type Hit struct {
	ID string
	// Score is 1 for the best hit of a question. Scores of different questions cannot be compared.
	Score float64
	// Words, Meaning and Far are the scores of the three rankers: words, the built-in encoder, and the external
	// model. Each score is a share of the ranker's best score for the question. 0 means that the document did not
	// match, or that the ranker was not used.
	Words, Meaning, Far float64
}

// A scoreState contains the scores of documents during the search for one question. Between searches, it caches the
// lookups of words.
type scoreState struct {
	number uint64 // number of the question
	asked  []queryTerm
	order  []uint64       // reused by rarestFirst
	by     map[uint64]int // index in asked of the term with a key
	words  []*wordLookup  // reused by addTerms
	stems  []bool         // by position of the stem: whether the question contains it; all false between searches
	// known caches the lookups of words. They are valid while change equals the index's changeCount.
	known  map[string]*wordLookup
	change uint64
	// docs contains the documents with a score, in arbitrary order. Each of these documents has a row in scores: the
	// score for the whole question, and the score for each part. slots contains, for each document, the start of its
	// row plus 1, or 0. All slots are 0 between searches.
	docs   []uint32
	slots  []uint32
	scores []float32
	row    int
	ranked []float32 // reused by combineParts
}

// Search returns at most most documents that share a word with the question, best first. Equally good documents are
// in the order of their IDs.
func (x *LexicalIndex) Search(text string, most int) []Hit {
	return x.searchQuestion(x.parseQuestion(text), most)
}

func (x *LexicalIndex) searchQuestion(q parsedQuestion, most int) []Hit {
	if most <= 0 {
		return nil
	}
	s, _ := x.scratch.Get().(*scoreState)
	if s == nil {
		s = &scoreState{by: map[uint64]int{}, known: map[string]*wordLookup{}}
	}
	defer x.scratch.Put(s)
	x.mu.RLock()
	defer x.mu.RUnlock()
	s.reset(x, 1+len(q.parts))
	x.addTerms(s, q.words, 0)
	for i, part := range q.parts {
		x.addTerms(s, part, 1<<i)
	}
	for _, at := range s.rarestFirst() {
		x.addScores(s, &s.asked[at])
	}
	return x.topHits(s, most)
}

// rarestFirst returns the indexes of the terms in asked. Terms that fewer documents contain come first; equally rare
// terms are in the order of the question.
func (s *scoreState) rarestFirst() []uint64 {
	const placeBits = 32
	s.order = s.order[:0]
	for i := range s.asked {
		s.order = append(s.order, uint64(len(s.asked[i].postings))<<placeBits|uint64(i))
	}
	slices.Sort(s.order)
	for i := range s.order {
		s.order[i] &= 1<<placeBits - 1
	}
	return s.order
}

// enoughScored is a number of documents. When so many documents have a score, the following terms, which are more
// frequent, only increase these scores. They add no further documents.
const enoughScored = 400

// addScores adds the weight of a term to the scores of the documents that contain the term.
func (x *LexicalIndex) addScores(s *scoreState, w *queryTerm) {
	var columns [maxParts]int // columns of the parts that contain the term
	n := 0
	for parts := w.parts; parts != 0; parts &= parts - 1 {
		columns[n] = 1 + bits.TrailingZeros8(parts)
		n++
	}
	most := float32(w.weight * x.rarity(len(w.postings)))
	full := len(s.docs) >= enoughScored
	for _, p := range w.postings {
		at := s.slots[p.doc]
		if at == 0 {
			if full {
				continue
			}
			at = s.scoreSlot(p.doc)
		}
		score := most * p.weight
		row := s.scores[at-1:][:s.row]
		row[0] += score
		for _, column := range columns[:n] {
			row[column] += score
		}
	}
}

// scoreSlot adds a row of scores for a document, and returns the start of the row plus 1.
func (s *scoreState) scoreSlot(doc uint32) (slot uint32) {
	n := len(s.scores)
	s.scores = s.scores[:n+s.row]
	clear(s.scores[n:])
	s.docs, s.slots[doc] = append(s.docs, doc), uint32(n+1)
	return uint32(n + 1)
}

// topHits returns the documents with the highest scores, at most most.
func (x *LexicalIndex) topHits(s *scoreState, most int) []Hit {
	var tops [1 + maxParts]float32
	for rest := s.scores; len(rest) > 0; rest = rest[s.row:] {
		for part, score := range rest[:s.row] {
			if score > tops[part] {
				tops[part] = score
			}
		}
	}
	for part, top := range tops {
		if top > 0 { // ignore a part that matches no document
			tops[part] = 1 / top
		}
	}
	// The name bonus is computed only for documents whose place in the result it can change. First come the
	// documents that are among the best without the bonus. Then follow those that are at most one bonus below the
	// last hit.
	least := float64(s.combineParts(tops[:], float32(x.weights.clause), most))
	hits := make([]Hit, 0, most+1)
	for i, doc := range s.docs {
		if score := float64(s.scores[i*s.row]); score >= least {
			hits = append(hits, Hit{ID: x.docs[doc].id, Score: score + x.weights.named*x.nameCoverage(s, doc)})
		}
	}
	slices.SortFunc(hits, compareHits)
	hits = hits[:min(len(hits), most)]
	for i, doc := range s.docs {
		score := float64(s.scores[i*s.row])
		if score < least && score >= least-x.weights.named &&
			(len(hits) < most || score >= hits[most-1].Score-x.weights.named) {
			hits = insertHit(hits, Hit{ID: x.docs[doc].id, Score: score + x.weights.named*x.nameCoverage(s, doc)}, most)
		}
	}
	for i := len(hits) - 1; i >= 0; i-- {
		hits[i].Score /= hits[0].Score
	}
	return hits
}

// combineParts replaces the score of each document for the whole question by a sum. The sum is this score, plus
// clauses times the score for the document's best part. tops contains, for the whole question and for each part, 1
// divided by the best score. combineParts returns a lower bound of the sum at position most, or 0 if there are fewer
// documents.
func (s *scoreState) combineParts(tops []float32, clauses float32, most int) float32 {
	s.ranked = slices.Grow(s.ranked[:0], len(s.docs))[:len(s.docs)]
	for at := range s.ranked {
		row := s.scores[at*s.row:][:s.row]
		var clause float32
		for i := 1; i < len(row); i++ {
			if score := row[i] * tops[i]; score > clause {
				clause = score
			}
		}
		row[0] = row[0]*tops[0] + clauses*clause
		s.ranked[at] = row[0] / (1 + clauses)
	}
	return nthScore(s.ranked, most) * (1 + clauses)
}

// nameCoverage returns the share of the words in a document's name that occur in the question, from 0 to 1. A rare
// word counts more than a frequent one.
func (x *LexicalIndex) nameCoverage(s *scoreState, doc uint32) float64 {
	name, some := x.docs[doc].name, false
	for _, stem := range name {
		some = some || s.stems[stem]
	}
	if !some {
		return 0
	}
	var asked, all float64
	for _, stem := range name {
		rare := x.rarity(len(x.terms.stems.terms[stem].list))
		all += rare
		if s.stems[stem] {
			asked += rare
		}
	}
	return asked / all
}

// rarity returns the inverse document frequency of a term that the given number of documents contain.
func (x *LexicalIndex) rarity(documents int) float64 {
	if documents < len(x.scale.rare) {
		return x.scale.rare[documents]
	}
	return inverseDocumentFrequency(len(x.byID), documents)
}

// inverseDocumentFrequency returns the BM25 weight of a term that some of all documents contain.
func inverseDocumentFrequency(all, some int) float64 {
	n, df := float64(all), float64(some)
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// insertHit inserts a hit into a sorted list of hits. If the list then has more than most hits, it drops the last
// one.
func insertHit(hits []Hit, h Hit, most int) []Hit {
	if n := len(hits); n == most && hits[n-1].Score > h.Score {
		return hits
	}
	i, _ := slices.BinarySearchFunc(hits, h, compareHits)
	if i == most {
		return hits
	}
	hits = slices.Insert(hits, i, h)
	return hits[:min(len(hits), most)]
}

// compareHits orders hits by decreasing score, then by ID.
func compareHits(a, b Hit) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	return cmp.Compare(a.ID, b.ID)
}

// maxCachedWords is the maximum number of words with cached lookups.
const maxCachedWords = 8192

// reset prepares the state for the next question. row is the number of scores for each document.
func (s *scoreState) reset(x *LexicalIndex, row int) {
	for _, doc := range s.docs {
		s.slots[doc] = 0
	}
	s.docs, s.scores, s.asked, s.row = s.docs[:0], s.scores[:0], s.asked[:0], row
	s.number++
	clear(s.by)
	if s.change != x.changeCount || len(s.known) > maxCachedWords {
		clear(s.known)
		s.change = x.changeCount
	}
	if clear(s.stems); len(s.stems) < len(x.terms.stems.terms) {
		s.stems = make([]bool, len(x.terms.stems.terms)*9/8)
	}
	if len(s.slots) < len(x.docs) {
		s.slots = make([]uint32, len(x.docs)*9/8)
	}
	s.scores = slices.Grow(s.scores, len(x.docs)*row)
}
