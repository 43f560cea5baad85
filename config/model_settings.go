package config

import (
	"time"
)

// Models are the models that are asked. The zero value asks none.
type Models struct {
	Embedding EmbeddingModel
	Rerank    RerankModel
}

// EmbeddingModel is the model that computes vectors of texts. The zero value of a field means its default; an empty
// Model disables it.
type EmbeddingModel struct {
	// Provider is "openai", "ollama", "gemini" or "voyage". BaseURL is its address.
	Provider, BaseURL, Model string
	Key                      SecretRef
	// Dimensions is how many numbers a vector should have.
	Dimensions int
	// QueryPrefix stands before each question, DocumentPrefix before each tool.
	QueryPrefix, DocumentPrefix string
	// Deadline is how long a question waits, Timeout how long a request for tools may take, Batch how many of them are
	// in one.
	Deadline, Timeout time.Duration
	Batch             int
}

// RerankModel is the model that reranks results. An empty URL disables it.
type RerankModel struct {
	// Kind is "cohere" or "tei".
	URL, Kind, Model string
	Key              SecretRef
	// Top is how many tools are judged, Timeout how long that may take.
	Top     int
	Timeout time.Duration
}

// The tables.
const (
	embeddingTable = "mcp.tool_discovery.embedding"
	rerankTable    = "mcp.tool_discovery.rerank"
)

// A modelSetting is a member of one of the tables.
type modelSetting struct {
	Section, Name, Type, Default, Doc string
	// Words are those that a string may be; nil is any.
	Words []string
	// target returns the field for its value: a *string, *int, *time.Duration or *SecretRef.
	target func(*Models) any
}

// modelMembers are the members of the tables.
func modelMembers() []modelSetting {
	return []modelSetting{
		{embeddingTable, "provider", `"openai", "ollama", "gemini" or "voyage"`, "openai",
			"whose interface the model has; openai is every server with /v1/embeddings, such as vLLM and text-embeddings-inference",
			[]string{"openai", "ollama", "gemini", "voyage"}, func(m *Models) any { return &m.Embedding.Provider }},
		{embeddingTable, "model", "string", "",
			"the model by which tools are found, beside words; without it nothing is sent anywhere",
			nil, func(m *Models) any { return &m.Embedding.Model }},
		{embeddingTable, "base_url", "URL", "the provider's own",
			"where the model is; variables are put in",
			nil, func(m *Models) any { return &m.Embedding.BaseURL }},
		{embeddingTable, "api_key", "string", "",
			"the key, or a reference to it; see Values",
			nil, func(m *Models) any { return &m.Embedding.Key }},
		{embeddingTable, "dimensions", "whole number", "the model's own",
			"how many numbers a vector has, of models that can give fewer",
			nil, func(m *Models) any { return &m.Embedding.Dimensions }},
		{embeddingTable, "query_prefix", "string", "",
			`what stands before each question, of models trained so: "query: ", "search_query: "`,
			nil, func(m *Models) any { return &m.Embedding.QueryPrefix }},
		{embeddingTable, "document_prefix", "string", "",
			`what stands before each tool, of models trained so: "passage: ", "search_document: "`,
			nil, func(m *Models) any { return &m.Embedding.DocumentPrefix }},
		{embeddingTable, "deadline", "time", "250ms",
			"how long a question waits for the model; then it is answered without",
			nil, func(m *Models) any { return &m.Embedding.Deadline }},
		{embeddingTable, "timeout", "time", "30s",
			"how long a request about tools may take, in the background",
			nil, func(m *Models) any { return &m.Embedding.Timeout }},
		{embeddingTable, "batch", "whole number", "32",
			"the most tools in one request",
			nil, func(m *Models) any { return &m.Embedding.Batch }},
		{rerankTable, "url", "URL", "",
			"a model that puts the best tools in order, by its address; /rerank is added where it does not end so",
			nil, func(m *Models) any { return &m.Rerank.URL }},
		{rerankTable, "kind", `"cohere" or "tei"`, "cohere",
			"how it is asked: as Cohere, Jina, Voyage and vLLM are, or as text-embeddings-inference is",
			[]string{"cohere", "tei"}, func(m *Models) any { return &m.Rerank.Kind }},
		{rerankTable, "model", "string", "",
			"the model; not needed with the kind tei",
			nil, func(m *Models) any { return &m.Rerank.Model }},
		{rerankTable, "api_key", "string", "",
			"the key, or a reference to it; see Values",
			nil, func(m *Models) any { return &m.Rerank.Key }},
		{rerankTable, "top", "whole number", "20",
			"how many tools it is shown",
			nil, func(m *Models) any { return &m.Rerank.Top }},
		{rerankTable, "timeout", "time", "1s",
			"how long a question waits for it; then the tools stay in the order that they have",
			nil, func(m *Models) any { return &m.Rerank.Timeout }},
	}
}
