package index

import (
	"context"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An Index ranks the documents of one view: what one class of callers may call. It may be used from several goroutines.
type Index struct {
	o       Options
	lexical *Lexical
	told    told

	// mu guards near, and that both know the same documents.
	mu   sync.RWMutex
	near *near
}

// Options say what an index ranks by besides words. The zero value is what needs no network.
type Options struct {
	// Words ranks by words alone: by no vector, neither of the built-in encoder nor from afar.
	Words bool
	// Far ranks by vectors that are made elsewhere; nil is nobody. Where it is a Wanter it is told of all documents.
	Far Far
	// Least is the least cosine of what is found, where Far has an answer: a document that it puts farther from the question is left
	// out, whatever its words, unless it is the best of all. 0 and below leaves out none.
	Least float64
	// Judge puts the first hits in order; nil leaves them as they are.
	Judge *Judge
}

// Far ranks documents by vectors that are made elsewhere. It may be used from several goroutines.
type Far interface {
	// Nearest gives at most so many of the keys, those whose texts lie nearest to the question, the nearest first. It answers
	// soon, or with an error: then the question is answered without it.
	Nearest(ctx context.Context, question string, most int, among []Key) ([]Near, error)
}

// A Parted is a Far that is asked apart by each index: what one has asked makes no other's answer come sooner. A Library is one.
type Parted interface {
	// Apart gives it for one index.
	Apart() Far
}

// New makes an index without documents.
func New(o Options) *Index {
	if far, ok := o.Far.(Parted); ok {
		o.Far = far.Apart()
	}
	return &Index{o: o, lexical: NewLexical(), near: newNear(o.Far != nil && !o.Words)}
}

// Len is the number of documents.
func (x *Index) Len() int { return x.lexical.Len() }

// Update takes documents in, each in the place of the one with its ID, and others out. A search that goes on meanwhile is
// answered from before or from after all of it.
func (x *Index) Update(put []Document, remove []string) {
	defer x.tell(put, remove)
	read := readAll(put)
	x.mu.Lock()
	defer x.mu.Unlock()
	var near sync.WaitGroup
	if !x.o.Words {
		near.Go(func() { x.near.update(put, read, remove) })
	}
	x.lexical.update(put, read, remove)
	near.Wait()
}

// A Search is a question, and what is wanted of the answer.
type Search struct {
	// Text is the question; of it the first 8 KiB are read.
	Text string
	// Most is how many hits there may be.
	Most int
	// Relative leaves out hits whose score is less than this share of the best one's: 0 leaves out none. The best stays in any
	// case.
	Relative float64
	// Alone asks nobody else, neither Far nor Judge.
	Alone bool
}

// Find gives the documents that answer a question, the best first; of equals the one whose ID comes first. A document that
// shares no word with the question may be found by what it means; if none shares one and none is near, there is no hit.
func (x *Index) Find(ctx context.Context, s Search) []Hit {
	if s.Most <= 0 {
		return nil
	}
	s.Text = safetext.Truncate(s.Text, maxQuery, safetext.Bytes, "")
	var hits []Hit
	if x.o.Words {
		hits = x.lexical.Search(s.Text, s.Most)
	} else {
		hits = x.fused(ctx, s)
	}
	for i, h := range hits {
		if i > 0 && h.Score < s.Relative {
			hits = hits[:i]
			break
		}
	}
	if s.Alone {
		return hits
	}
	return x.judged(ctx, s.Text, hits)
}
