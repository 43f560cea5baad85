package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/index"
)

// The forms in which models are asked how well texts answer.
const (
	// Cohere is {model, query, documents}, as Cohere, Jina, Voyage, vLLM and others have it.
	Cohere = "cohere"
	// TEI is {query, texts}, as text-embeddings-inference has it.
	TEI = "tei"
)

// RerankerOptions say which model judges texts.
type RerankerOptions struct {
	// Account's BaseURL is the whole address; /rerank is added where it does not end so.
	Account
	// Kind is Cohere or TEI; empty means Cohere.
	Kind string
	// Model is its name; TEI has one only, and needs none.
	Model string
}

// A Reranker asks a model elsewhere. Its methods may be called from several goroutines.
type Reranker struct {
	o      RerankerOptions
	client *client
	url    string
}

var _ index.Reranker = (*Reranker)(nil)

// NewReranker makes one. Nothing is asked yet. The error says which option is wrong.
func NewReranker(o RerankerOptions) (*Reranker, error) {
	o.Kind = cmp.Or(o.Kind, Cohere)
	switch {
	case o.Kind != Cohere && o.Kind != TEI:
		return nil, errors.New("the kind is none of cohere and tei")
	case o.BaseURL == "":
		return nil, errors.New("an address is needed")
	case o.Kind == Cohere && o.Model == "":
		return nil, errors.New("a model is needed")
	}
	address := strings.TrimRight(o.BaseURL, "/")
	if !strings.HasSuffix(address, "/rerank") {
		address += "/rerank"
	}
	c, err := newClient(o.Account, address)
	if err != nil {
		return nil, err
	}
	return &Reranker{o: o, client: c, url: address}, nil
}

// Close lets go of connections. The reranker may be used further.
func (r *Reranker) Close() error { return r.client.close() }

// Rerank gives a score for each text. Of a text the first 8,000 bytes are sent.
func (r *Reranker) Rerank(ctx context.Context, question string, texts []string) ([]float64, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	sent := make([]string, len(texts))
	for i, text := range texts {
		sent[i] = cut(text)
	}
	body := map[string]any{"model": r.o.Model, "query": cut(question), "documents": sent}
	if r.o.Kind == TEI {
		body = map[string]any{"query": cut(question), "texts": sent, "truncate": true}
	}
	var raw json.RawMessage
	err := r.client.post(ctx, ask{url: r.url, body: body, most: 1<<20 + int64(len(texts))*2*maxText}, &raw)
	if err == nil {
		var scores []float64
		if scores, err = readScores(raw, len(texts)); err == nil {
			return scores, nil
		}
	}
	return nil, fmt.Errorf("rerank by %s: %w", cmp.Or(r.o.Model, r.o.Kind), err)
}

// A judged text is one of an answer. Where its score stands depends on who answers.
type judged struct {
	Index     *int     `json:"index"`
	Score     *float64 `json:"score"`
	Relevance *float64 `json:"relevance_score"`
}

var errScores = errors.New("the answer has not a score for each text")

// readScores reads an answer: a list, or an object that has it as results (Cohere, Jina) or data (Voyage).
func readScores(raw json.RawMessage, texts int) ([]float64, error) {
	var list []judged
	if json.Unmarshal(raw, &list) != nil {
		var answer struct{ Results, Data []judged }
		if json.Unmarshal(raw, &answer) != nil {
			return nil, errors.New("the answer is not understood")
		}
		list = answer.Results
		if list == nil {
			list = answer.Data
		}
	}
	if len(list) != texts {
		return nil, errScores
	}
	scores, seen := make([]float64, texts), make([]bool, texts)
	for _, j := range list {
		score := cmp.Or(j.Relevance, j.Score)
		if j.Index == nil || score == nil || *j.Index < 0 || *j.Index >= texts || seen[*j.Index] || math.IsNaN(*score) {
			return nil, errScores
		}
		scores[*j.Index], seen[*j.Index] = *score, true
	}
	return scores, nil
}
