package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// The request formats of reranking models.
const (
	// RerankCohere is {model, query, documents}, the format of Cohere, Jina, Voyage, vLLM and others.
	RerankCohere = "cohere"
	// RerankTEI is {query, texts}, the format of text-embeddings-inference.
	RerankTEI = "tei"
)

// RerankOptions select and configure the reranking model.
type RerankOptions struct {
	// BaseURL of the Endpoint is the whole address, and is required. If it does not end with /rerank, that path is
	// appended.
	Endpoint
	// Kind is RerankCohere or RerankTEI; empty means RerankCohere.
	Kind string
	// Model is the name of the model. RerankTEI does not need it, because such a server has only one model.
	Model string
}

// A RerankClient sends requests to a remote reranking model. Its methods may be called from several goroutines.
type RerankClient struct {
	o      RerankOptions
	client *apiClient
	url    string
}

var _ index.Reranker = (*RerankClient)(nil)

// NewRerankClient returns a client without sending a request. The error names the invalid option.
func NewRerankClient(o RerankOptions) (*RerankClient, error) {
	o.Kind = cmp.Or(o.Kind, RerankCohere)
	switch {
	case o.Kind != RerankCohere && o.Kind != RerankTEI:
		return nil, errors.New("the kind is none of cohere and tei")
	case o.BaseURL == "":
		return nil, errors.New("an address is needed")
	case o.Kind == RerankCohere && o.Model == "":
		return nil, errors.New("a model is needed")
	}
	address := strings.TrimRight(o.BaseURL, "/")
	if !strings.HasSuffix(address, "/rerank") {
		address += "/rerank"
	}
	c, err := newAPIClient(o.Endpoint, address)
	if err != nil {
		return nil, err
	}
	return &RerankClient{o: o, client: c, url: address}, nil
}

// Close closes idle connections. The client may still be used afterwards.
func (r *RerankClient) Close() error { return r.client.close() }

// Rerank returns a score for each text: how well the text answers the question. At most the first 8,000 bytes of a text
// are sent.
func (r *RerankClient) Rerank(ctx context.Context, question string, texts []string) ([]float64, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	sent := make([]string, len(texts))
	for i, text := range texts {
		sent[i] = truncate(text)
	}
	body := map[string]any{"model": r.o.Model, "query": truncate(question), "documents": sent}
	if r.o.Kind == RerankTEI {
		body = map[string]any{"query": truncate(question), "texts": sent, "truncate": true}
	}
	var raw json.RawMessage
	err := r.client.postJSON(ctx, apiRequest{url: r.url, body: body,
		maxResponse: 1<<20 + int64(len(texts))*2*maxTextBytes}, &raw)
	if err == nil {
		var scores []float64
		if scores, err = parseScores(raw, len(texts)); err == nil {
			return scores, nil
		}
	}
	return nil, fmt.Errorf("rerank by %s: %w", cmp.Or(r.o.Model, r.o.Kind), err)
}

// A scoredText is the score of one text in a response. Providers name the score differently.
type scoredText struct {
	Index     *int     `json:"index"`
	Score     *float64 `json:"score"`
	Relevance *float64 `json:"relevance_score"`
}

var errScoreCount = errors.New("the answer does not have a score for each text")

// parseScores returns the scores in a response, in the order of the texts. The response is a list, or an object that
// contains the list as results (Cohere, Jina) or data (Voyage).
func parseScores(raw json.RawMessage, texts int) ([]float64, error) {
	var list []scoredText
	if json.Unmarshal(raw, &list) != nil {
		var answer struct{ Results, Data []scoredText }
		if json.Unmarshal(raw, &answer) != nil {
			return nil, errors.New("the answer is not understood")
		}
		list = answer.Results
		if list == nil {
			list = answer.Data
		}
	}
	if len(list) != texts {
		return nil, errScoreCount
	}
	scores, seen := make([]float64, texts), make([]bool, texts)
	for _, j := range list {
		score := cmp.Or(j.Relevance, j.Score)
		if j.Index == nil || score == nil || *j.Index < 0 || *j.Index >= texts || seen[*j.Index] || math.IsNaN(*score) {
			return nil, errScoreCount
		}
		scores[*j.Index], seen[*j.Index] = *score, true
	}
	return scores, nil
}
