package toolsearch

import (
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// An Explanation describes why a tool matches a query: the score of each ranking arm, and of each field for words. Each
// is a share of the best tool's score, from 0 to 1.
type Explanation struct {
	// Words, Meaning and Far are the arms: words, the built-in encoder, and vectors made elsewhere, which take the
	// encoder's place.
	Words       float64
	Meaning     float64
	Far         float64
	Name        float64
	Server      float64
	Description float64
	Parameters  float64
}

// Explain explains hits of a query, in their order. It indexes all tools again, so it is for people and not for every
// query.
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

// Stats describes the size of a view of tools, and how it is listed.
type Stats struct {
	// Cards is the number of cards, Servers the number of their servers. Drawbridge itself counts as a server.
	Cards   int `json:"cards"`
	Servers int `json:"servers"`
	// Tokens is the approximate number of tokens of all definitions, ShortTokens that of the short list.
	Tokens      int `json:"tokens"`
	ShortTokens int `json:"short_tokens"`
	// Mode is the configured mode. Short reports whether the callers see the short list.
	Mode  Mode `json:"mode"`
	Short bool `json:"short"`
}

// Stats returns the numbers of the view.
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

// MeasureIndexing returns the time to index all tools into a separate index.
func (v *CardView) MeasureIndexing() time.Duration {
	began := time.Now()
	newClassIndex(index.Options{LexicalOnly: v.finder.options.Index.LexicalOnly}, &documentCache{}).update(v)
	return time.Since(began)
}

// BuildIndex indexes all tools now, instead of on the first query, and returns their number.
func (v *CardView) BuildIndex() int {
	v.index.update(v)
	return v.index.index.Len()
}
