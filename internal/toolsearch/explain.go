package toolsearch

import (
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// An Explanation describes why a tool matches a query. It contains the score of each ranker, and the score of the
// ranking by words for each field of the tool. Each score is a share of the best tool's score, from 0 to 1.
type Explanation struct {
	// Words, Meaning and Far are the scores of the rankers: words, the built-in encoder, and an external embedding
	// model that replaces the built-in encoder. The other members are the scores of a ranking by words that uses only
	// one field.
	Words       float64
	Meaning     float64
	Far         float64
	Name        float64
	Server      float64
	Description float64
	Parameters  float64
}

// Explain returns the explanations of hits of a query, in the order of the hits. It indexes all tools again for each
// field, so it is too slow to be called for every query.
func (v *CardView) Explain(ctx context.Context, query string, hits []Hit) []Explanation {
	out := make([]Explanation, len(hits))
	for i, h := range hits {
		out[i] = Explanation{Words: h.Ranking.Words, Meaning: h.Ranking.Meaning, Far: h.Ranking.Far}
	}
	for _, field := range []struct {
		of  func(*Explanation) *float64
		cut func(index.Document) index.Document
	}{
		{func(e *Explanation) *float64 { return &e.Name },
			func(d index.Document) index.Document { return index.Document{Name: d.Name} }},
		{func(e *Explanation) *float64 { return &e.Server },
			func(d index.Document) index.Document { return index.Document{Server: d.Server} }},
		{func(e *Explanation) *float64 { return &e.Description }, func(d index.Document) index.Document {
			return index.Document{Title: d.Title, Description: d.Description}
		}},
		{func(e *Explanation) *float64 { return &e.Parameters },
			func(d index.Document) index.Document { return index.Document{Schema: d.Schema} }},
	} {
		var docs []index.Document
		for _, s := range v.specs {
			if isModelVisible(s) {
				doc := field.cut(v.index.docs.get(s))
				doc.ID = string(s.Name)
				docs = append(docs, doc)
			}
		}
		words := index.NewLexicalIndex()
		words.Update(docs, nil)
		scores := map[string]float64{}
		for _, h := range words.Search(query, len(docs)) {
			scores[h.ID] = h.Score
		}
		for i, h := range hits {
			*field.of(&out[i]) = scores[string(h.Spec.Name)]
		}
		if ctx.Err() != nil {
			break
		}
	}
	return out
}

// Stats contains the numbers of cards, servers and tokens of a view, and how the cards are listed.
type Stats struct {
	// Cards is the number of cards, and Servers the number of their servers. Drawbridge itself counts as a server if
	// it has cards.
	Cards   int `json:"cards"`
	Servers int `json:"servers"`
	// Tokens is the estimated number of tokens of all definitions. ShortTokens is the estimated number of tokens of
	// the short list.
	Tokens      int `json:"tokens"`
	ShortTokens int `json:"short_tokens"`
	// Mode is the configured mode. Short reports whether the callers get the short list instead of all tools.
	Mode  Mode `json:"mode"`
	Short bool `json:"short"`
}

// Stats returns the statistics of the view.
func (v *CardView) Stats() Stats {
	s := Stats{Cards: len(v.specs), Tokens: v.tokens, Mode: v.finder.options.Mode, Short: v.isShort}
	if s.Mode == "" {
		s.Mode = Direct
	}
	servers := map[drawbridge.ServerID]bool{}
	for _, spec := range v.specs {
		servers[spec.Server] = true
	}
	s.Servers = len(servers)
	for _, card := range v.ShortList() {
		s.ShortTokens += EstimateTokens(card)
	}
	return s
}

// MeasureIndexing indexes all tools of the view in a new index, and returns the duration. The index is then
// discarded.
func (v *CardView) MeasureIndexing() time.Duration {
	began := time.Now()
	newClassIndex(index.Options{LexicalOnly: v.finder.options.Index.LexicalOnly}, &documentCache{}).update(v)
	return time.Since(began)
}

// BuildIndex indexes all tools now, instead of at the first query, and returns the number of indexed tools.
func (v *CardView) BuildIndex() int {
	v.index.update(v)
	return v.index.index.Len()
}
