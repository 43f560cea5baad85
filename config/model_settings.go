package config

import (
	"time"
)

// Models configures the external models for tool search. The zero value uses no model.
type Models struct {
	Embedding EmbeddingModel
	Rerank    RerankModel
}

// EmbeddingModel configures the model that computes vectors of texts. The zero value of a field means its default. If
// Model is empty, no embedding model is used.
type EmbeddingModel struct {
	// Provider is "openai", "ollama", "gemini" or "voyage". BaseURL is the address of its API.
	Provider, BaseURL, Model string
	Key                      SecretRef
	// Dimensions is the requested number of dimensions of each vector.
	Dimensions int
	// QueryPrefix is prepended to each question, DocumentPrefix to the text of each tool.
	QueryPrefix, DocumentPrefix string
	// Deadline is how long a search waits for the vector of its question. Timeout limits a request for the vectors of
	// tools; Batch is the maximum number of tools in such a request.
	Deadline, Timeout time.Duration
	Batch             int
}

// RerankModel configures the model that sorts the tools that a search found. If URL is empty, no such model is used.
type RerankModel struct {
	// URL is the address of the model. Kind is its API: "cohere" or "tei".
	URL, Kind, Model string
	Key              SecretRef
	// Top is the number of found tools that the model sorts. Timeout limits the request to the model.
	Top     int
	Timeout time.Duration
}

// The tables of drawbridge.toml that configure models.
const (
	embeddingTable = "mcp.tool_discovery.embedding"
	rerankTable    = "mcp.tool_discovery.rerank"
)

// A modelSetting is one setting in the table embeddingTable or rerankTable.
type modelSetting struct {
	Section, Name, Type, Default, Doc string
	// Words are the permitted strings; nil permits any string.
	Words []string
	// target returns a pointer to the field that stores the value: a *string, *int, *time.Duration or *SecretRef.
	target func(*Models) any
}

// modelMembers returns the settings of both tables.
func modelMembers() []modelSetting {
	return []modelSetting{
		{embeddingTable, "provider", `"openai", "ollama", "gemini" or "voyage"`, "openai",
			"the API of the model; openai is for every server with /v1/embeddings, such as vLLM and text-embeddings-inference",
			[]string{"openai", "ollama", "gemini", "voyage"}, func(m *Models) any { return &m.Embedding.Provider }},
		{embeddingTable, "model", "string", "",
			"the embedding model for tool search, in addition to words; without it nothing is sent anywhere",
			nil, func(m *Models) any { return &m.Embedding.Model }},
		{embeddingTable, "base_url", "URL", "the provider's own",
			"the address of the model; variables are expanded",
			nil, func(m *Models) any { return &m.Embedding.BaseURL }},
		{embeddingTable, "api_key", "string", "",
			"the key, or a reference to it; see Values",
			nil, func(m *Models) any { return &m.Embedding.Key }},
		{embeddingTable, "dimensions", "whole number", "the model's own",
			"the dimensions of a vector, for models that support fewer",
			nil, func(m *Models) any { return &m.Embedding.Dimensions }},
		{embeddingTable, "query_prefix", "string", "",
			`a prefix for each question, for models trained with one: "query: ", "search_query: "`,
			nil, func(m *Models) any { return &m.Embedding.QueryPrefix }},
		{embeddingTable, "document_prefix", "string", "",
			`a prefix for each tool, for models trained with one: "passage: ", "search_document: "`,
			nil, func(m *Models) any { return &m.Embedding.DocumentPrefix }},
		{embeddingTable, "deadline", "time", "250ms",
			"how long a question waits for the model before it is answered without it",
			nil, func(m *Models) any { return &m.Embedding.Deadline }},
		{embeddingTable, "timeout", "time", "30s",
			"time limit of a request that embeds tools in the background",
			nil, func(m *Models) any { return &m.Embedding.Timeout }},
		{embeddingTable, "batch", "whole number", "32",
			"the maximum number of tools in one request",
			nil, func(m *Models) any { return &m.Embedding.Batch }},
		{rerankTable, "url", "URL", "",
			"the address of a model that reorders the best tools; /rerank is appended if it is missing",
			nil, func(m *Models) any { return &m.Rerank.URL }},
		{rerankTable, "kind", `"cohere" or "tei"`, "cohere",
			"the API: cohere for Cohere, Jina, Voyage and vLLM, tei for text-embeddings-inference",
			[]string{"cohere", "tei"}, func(m *Models) any { return &m.Rerank.Kind }},
		{rerankTable, "model", "string", "",
			"the model; not needed with the kind tei",
			nil, func(m *Models) any { return &m.Rerank.Model }},
		{rerankTable, "api_key", "string", "",
			"the key, or a reference to it; see Values",
			nil, func(m *Models) any { return &m.Rerank.Key }},
		{rerankTable, "top", "whole number", "20",
			"the number of tools that it reorders",
			nil, func(m *Models) any { return &m.Rerank.Top }},
		{rerankTable, "timeout", "time", "1s",
			"how long a question waits for the model before the tools keep their order",
			nil, func(m *Models) any { return &m.Rerank.Timeout }},
	}
}
