// Package model says what may be set of models that run elsewhere: which one gives tools their places by meaning, and which one
// judges how well they answer.
package model

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/config/refer"
)

// Models are the models that are asked. The zero value asks none.
type Models struct {
	Embedding Embedding
	Rerank    Rerank
}

// Embedding is the model that gives texts their places. The zero value of a field means its default; without a Model there is none.
type Embedding struct {
	// Provider is "openai", "ollama", "gemini" or "voyage". BaseURL is where it is.
	Provider, BaseURL, Model string
	Key                      refer.Key
	// Dimensions is how many numbers a vector should have.
	Dimensions int
	// QueryPrefix stands before each question, DocumentPrefix before each tool.
	QueryPrefix, DocumentPrefix string
	// Deadline is how long a question waits, Timeout how long a request for tools may take, Batch how many of them are in one.
	Deadline, Timeout time.Duration
	Batch             int
}

// Rerank is the model that judges. Without a URL there is none.
type Rerank struct {
	// Kind is "cohere" or "tei".
	URL, Kind, Model string
	Key              refer.Key
	// Top is how many tools are judged, Timeout how long that may take.
	Top     int
	Timeout time.Duration
}

// The tables.
const (
	embedding = "mcp.tool_discovery.embedding"
	rerank    = "mcp.tool_discovery.rerank"
)

// A Setting is a member of one of the tables.
type Setting struct {
	Section, Name, Type, Default, Doc string
	// Words are those that a string may be; nil is any.
	Words []string
	// To gives where its value is kept: a *string, *int, *time.Duration or *refer.Key.
	To func(*Models) any
}

// Settings are the members of the tables.
func Settings() []Setting {
	return []Setting{
		{embedding, "provider", `"openai", "ollama", "gemini" or "voyage"`, "openai",
			"whose interface the model has; openai is every server with /v1/embeddings, such as vLLM and text-embeddings-inference",
			[]string{"openai", "ollama", "gemini", "voyage"}, func(m *Models) any { return &m.Embedding.Provider }},
		{embedding, "model", "string", "",
			"the model by which tools are found, beside words; without it nothing is sent anywhere",
			nil, func(m *Models) any { return &m.Embedding.Model }},
		{embedding, "base_url", "URL", "the provider's own",
			"where the model is; variables are put in",
			nil, func(m *Models) any { return &m.Embedding.BaseURL }},
		{embedding, "api_key", "string", "",
			"the key, or a reference to it; see Values",
			nil, func(m *Models) any { return &m.Embedding.Key }},
		{embedding, "dimensions", "whole number", "the model's own",
			"how many numbers a vector has, of models that can give fewer",
			nil, func(m *Models) any { return &m.Embedding.Dimensions }},
		{embedding, "query_prefix", "string", "",
			`what stands before each question, of models trained so: "query: ", "search_query: "`,
			nil, func(m *Models) any { return &m.Embedding.QueryPrefix }},
		{embedding, "document_prefix", "string", "",
			`what stands before each tool, of models trained so: "passage: ", "search_document: "`,
			nil, func(m *Models) any { return &m.Embedding.DocumentPrefix }},
		{embedding, "deadline", "time", "250ms",
			"how long a question waits for the model; then it is answered without",
			nil, func(m *Models) any { return &m.Embedding.Deadline }},
		{embedding, "timeout", "time", "30s",
			"how long a request about tools may take, in the background",
			nil, func(m *Models) any { return &m.Embedding.Timeout }},
		{embedding, "batch", "whole number", "32",
			"the most tools in one request",
			nil, func(m *Models) any { return &m.Embedding.Batch }},
		{rerank, "url", "URL", "",
			"a model that puts the best tools in order, by its address; /rerank is added where it does not end so",
			nil, func(m *Models) any { return &m.Rerank.URL }},
		{rerank, "kind", `"cohere" or "tei"`, "cohere",
			"how it is asked: as Cohere, Jina, Voyage and vLLM are, or as text-embeddings-inference is",
			[]string{"cohere", "tei"}, func(m *Models) any { return &m.Rerank.Kind }},
		{rerank, "model", "string", "",
			"the model; with the kind tei there is no need of it",
			nil, func(m *Models) any { return &m.Rerank.Model }},
		{rerank, "api_key", "string", "",
			"the key, or a reference to it; see Values",
			nil, func(m *Models) any { return &m.Rerank.Key }},
		{rerank, "top", "whole number", "20",
			"how many tools it is shown",
			nil, func(m *Models) any { return &m.Rerank.Top }},
		{rerank, "timeout", "time", "1s",
			"how long a question waits for it; then the tools stay in the order that they have",
			nil, func(m *Models) any { return &m.Rerank.Timeout }},
	}
}
