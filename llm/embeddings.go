package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// The supported providers of embedding models.
const (
	// ProviderOpenAI is any server with OpenAI's API /v1/embeddings: OpenAI, vLLM, text-embeddings-inference and many
	// others.
	ProviderOpenAI = "openai"
	// ProviderOllama is a server with the same API on this machine.
	ProviderOllama = "ollama"
	// ProviderGemini is Google's API, ProviderVoyage that of Voyage AI.
	ProviderGemini = "gemini"
	ProviderVoyage = "voyage"
)

// defaultBaseURLs are the default addresses by provider.
var defaultBaseURLs = map[string]string{
	ProviderOpenAI: "https://api.openai.com/v1",
	ProviderOllama: "http://127.0.0.1:11434/v1",
	ProviderGemini: "https://generativelanguage.googleapis.com/v1beta",
	ProviderVoyage: "https://api.voyageai.com/v1",
}

const (
	// defaultBatch is the default number of texts in one request. It is the limit of text-embeddings-inference; the
	// other providers accept more texts.
	defaultBatch = 32
	// maxTextBytes is the maximum number of bytes of a text that are sent. Models accept 512 to 8,192 tokens, and the
	// rest of a long text does not help to distinguish a tool from others.
	maxTextBytes = 8000
	// maxDimension is the maximum number of dimensions of a vector.
	maxDimension = 8192
	// numberBytes is the approximate maximum size of a number in a response, in bytes.
	numberBytes = 32
)

// EmbeddingOptions select and configure the embedding model.
type EmbeddingOptions struct {
	Endpoint
	// Provider is ProviderOpenAI, ProviderOllama, ProviderGemini or ProviderVoyage; empty means ProviderOpenAI.
	Provider string
	// Model is the provider's name of the model.
	Model string
	// Dimensions is the number of dimensions of a vector; 0 means the model's default.
	Dimensions int
	// QueryPrefix is added before each question, DocumentPrefix before each text that may answer a question. Some
	// models were trained with such prefixes.
	QueryPrefix, DocumentPrefix string
	// Batch is the maximum number of texts in one request; 0 means 32.
	Batch int
}

// An EmbeddingClient sends requests to a remote embedding model. Its methods may be called from several goroutines.
type EmbeddingClient struct {
	o      EmbeddingOptions
	client *apiClient
	base   string
}

var _ index.Embedder = (*EmbeddingClient)(nil)

// NewEmbeddingClient returns a client without sending a request. The error names the invalid option.
func NewEmbeddingClient(o EmbeddingOptions) (*EmbeddingClient, error) {
	o.Provider, o.Batch = cmp.Or(o.Provider, ProviderOpenAI), cmp.Or(o.Batch, defaultBatch)
	home, known := defaultBaseURLs[o.Provider]
	switch {
	case !known:
		return nil, errors.New("the provider is none of openai, ollama, gemini and voyage")
	case o.Model == "":
		return nil, errors.New("a model is needed")
	case o.Batch < 0 || o.Dimensions < 0 || o.Dimensions > maxDimension:
		return nil, fmt.Errorf("batch must be above 0, and dimensions at most %d", maxDimension)
	}
	base := withVersionPath(cmp.Or(o.BaseURL, home), o.Provider)
	c, err := newAPIClient(o.Endpoint, base)
	if err != nil {
		return nil, err
	}
	return &EmbeddingClient{o: o, client: c, base: base}, nil
}

// withVersionPath returns the base URL base without a trailing slash and a trailing /embeddings. If no path remains, it
// appends the API version of the provider, such as /v1.
func withVersionPath(base, provider string) string {
	base = strings.TrimRight(base, "/")
	base = strings.TrimSuffix(base, "/embeddings")
	if u, err := url.Parse(base); err == nil && u.Path == "" && u.RawQuery == "" {
		if provider == ProviderGemini {
			return base + "/v1beta"
		}
		return base + "/v1"
	}
	return base
}

// Close closes idle connections. The client may still be used afterwards.
func (e *EmbeddingClient) Close() error { return e.client.close() }

// Model returns the name of the vector space: the provider, the model, and the other options on which the vectors
// depend. Vectors can be compared only within one vector space. The address of the model is not part of the name.
func (e *EmbeddingClient) Model() string {
	provider := e.o.Provider
	if provider == ProviderOllama {
		provider = ProviderOpenAI
	}
	name := provider + ":" + e.o.Model
	if e.o.Dimensions > 0 {
		name += fmt.Sprintf("@%d", e.o.Dimensions)
	}
	if e.o.DocumentPrefix != "" {
		sum := sha256.Sum256([]byte(e.o.DocumentPrefix))
		name += "+" + hex.EncodeToString(sum[:4])
	}
	return name
}

// Embed returns a vector for each text, in requests of at most Batch texts. of tells the model whether the texts are
// questions or documents. At most the first 8,000 bytes of a text are sent.
func (e *EmbeddingClient) Embed(ctx context.Context, of index.EmbedRole, texts []string) ([][]float32, error) {
	prefix := e.o.DocumentPrefix
	if of == index.RoleQuery {
		prefix = e.o.QueryPrefix
	}
	all := make([][]float32, 0, len(texts))
	for batch := range slices.Chunk(texts, e.o.Batch) {
		sent := make([]string, len(batch))
		for i, text := range batch {
			sent[i] = prefix + truncate(text)
		}
		vectors, err := e.embedOpenAI(ctx, of, sent)
		if err == nil {
			err = checkVectors(vectors, len(sent), e.o.Dimensions)
		}
		if err == nil && len(all) > 0 && len(all[0]) != len(vectors[0]) {
			err = errVectorLengths
		}
		if err != nil {
			return nil, fmt.Errorf("embed by %s: %w", e.o.Model, err)
		}
		all = append(all, vectors...)
	}
	return all, nil
}

// truncate returns at most the first maxTextBytes bytes of a text, without splitting a character.
func truncate(text string) string {
	return safetext.Truncate(strings.ToValidUTF8(text, "�"), maxTextBytes, safetext.Bytes, "")
}

func (e *EmbeddingClient) embedOpenAI(ctx context.Context, of index.EmbedRole, texts []string) ([][]float32, error) {
	if e.o.Provider == ProviderGemini {
		return e.embedGemini(ctx, of, texts)
	}
	body := map[string]any{"model": e.o.Model, "input": texts}
	switch {
	case e.o.Provider == ProviderVoyage:
		body["input_type"] = "document"
		if of == index.RoleQuery {
			body["input_type"] = "query"
		}
		if e.o.Dimensions > 0 {
			body["output_dimension"] = e.o.Dimensions
		}
	case e.o.Dimensions > 0:
		body["dimensions"] = e.o.Dimensions
	}
	var answer openAIResponse
	if err := e.client.postJSON(ctx, apiRequest{url: e.base + "/embeddings", body: body,
		maxResponse: maxEmbeddingResponse(len(texts))}, &answer); err != nil {
		return nil, err
	}
	return answer.orderedVectors(len(texts))
}

// embedGemini requests vectors in Google's own format, which states whether the texts are questions or documents.
func (e *EmbeddingClient) embedGemini(ctx context.Context, of index.EmbedRole, texts []string) ([][]float32, error) {
	name := "models/" + strings.TrimPrefix(e.o.Model, "models/")
	task := "RETRIEVAL_DOCUMENT"
	if of == index.RoleQuery {
		task = "RETRIEVAL_QUERY"
	}
	type part struct {
		Text string `json:"text"`
	}
	type content struct {
		Parts []part `json:"parts"`
	}
	type request struct {
		Model      string  `json:"model"`
		Content    content `json:"content"`
		Task       string  `json:"taskType"`
		Dimensions int     `json:"outputDimensionality,omitempty"`
	}
	var body struct {
		Requests []request `json:"requests"`
	}
	for _, text := range texts {
		body.Requests = append(body.Requests, request{name, content{[]part{{text}}}, task, e.o.Dimensions})
	}
	var answer struct {
		Embeddings []struct {
			Values []float32 `json:"values"`
		} `json:"embeddings"`
	}
	err := e.client.postJSON(ctx, apiRequest{
		url:  e.base + "/models/" + url.PathEscape(strings.TrimPrefix(name, "models/")) + ":batchEmbedContents",
		body: body, maxResponse: maxEmbeddingResponse(len(texts)),
		addKey: func(h http.Header, key string) { h.Set("x-goog-api-key", key) },
	}, &answer)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, 0, len(texts))
	for _, v := range answer.Embeddings {
		vectors = append(vectors, v.Values)
	}
	return vectors, nil
}

// maxEmbeddingResponse returns the maximum size in bytes of a response with vectors for the given number of texts.
func maxEmbeddingResponse(texts int) int64 { return 1<<20 + int64(texts)*maxDimension*numberBytes }

var (
	errVectorCount   = errors.New("the answer has not a vector for each text")
	errVectorLengths = errors.New("the vectors of the answer differ in length")
)

// checkVectors returns an error if there is not one vector for each of texts texts, or if a vector has an invalid
// length or value. If dimensions is not 0, each vector must have that length.
func checkVectors(vectors [][]float32, texts, dimensions int) error {
	if len(vectors) != texts {
		return errVectorCount
	}
	for _, v := range vectors {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		switch {
		case len(v) == 0 || len(v) > maxDimension:
			return fmt.Errorf("a vector of the answer has %d dimensions", len(v))
		case len(v) != len(vectors[0]):
			return errVectorLengths
		case dimensions > 0 && len(v) != dimensions:
			return fmt.Errorf("the answer has %d dimensions, and %d were asked for", len(v), dimensions)
		case math.IsNaN(sum) || math.IsInf(sum, 0) || sum == 0:
			return errors.New("a vector of the answer leads nowhere")
		}
	}
	return nil
}
