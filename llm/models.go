package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// The tables of the settings in drawbridge.toml.
const (
	embeddingTable = "mcp.tool_discovery.embedding"
	rerankTable    = "mcp.tool_discovery.rerank"
)

// ModelOptions are the options of OpenModels and CheckModels.
type ModelOptions struct {
	Settings config.Models
	// Embedder and Reranker replace the models that the settings name; nil means the models of the settings.
	Embedder index.Embedder
	Reranker index.Reranker
	// OpenVectors opens the store of vectors if there is an embedding model; nil means a store in memory. If
	// SearchInStore is true, the store searches its vectors, in place of Drawbridge.
	OpenVectors   func() (VectorStoreCloser, error)
	SearchInStore bool
	// Resolver resolves references in keys. Environ is the environment of the commands in such references. Keys that
	// were found are added to Known, so that texts are redacted.
	Resolver *secrets.Resolver
	Environ  []string
	Known    *secrets.KnownSecrets
	// Logger logs when a model becomes unavailable and available again; nil discards these messages.
	Logger *slog.Logger
}

// A VectorStoreCloser is a store of vectors that must be closed.
type VectorStoreCloser interface {
	index.VectorStore
	Close() error
}

// ToolModels are the opened models with which tools are searched. The methods of a nil *ToolModels act as if no model
// is configured.
type ToolModels struct {
	embeddings *index.EmbeddingIndex
	reranker   *index.HitReranker
	closers    []func() error
}

// A ModelStatus describes the models. The field of a model that is not configured is nil.
type ModelStatus struct {
	Embedding *index.EmbeddingIndexStatus `json:"embedding,omitempty"`
	Rerank    *index.HitRerankerStatus    `json:"rerank,omitempty"`
}

// OpenModels opens the configured models. It returns nil if no model is configured. The error is a *drawbridge.Fault
// with the code InvalidInput for inconsistent settings.
func OpenModels(o ModelOptions) (*ToolModels, error) {
	var m ToolModels
	if err := m.openEmbedding(o); err != nil {
		return nil, errors.Join(invalidSettings(embeddingTable, err), m.Close())
	}
	if err := m.openRerank(o); err != nil {
		return nil, errors.Join(invalidSettings(rerankTable, err), m.Close())
	}
	if m.embeddings == nil && m.reranker == nil {
		return nil, nil
	}
	return &m, nil
}

func invalidSettings(table string, err error) error {
	if fault, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return fault // the vector store reports its own faults
	}
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read [" + table +
			"] in drawbridge.toml", Err: err,
	}
}

func (m *ToolModels) openEmbedding(o ModelOptions) error {
	if o.Embedder == nil && isEmbeddingUnset(o.Settings.Embedding) {
		return nil
	}
	embedder, end, err := o.openEmbedder()
	if err != nil {
		return err
	}
	m.closers = append(m.closers, end)
	s := o.Settings.Embedding
	l := index.EmbeddingIndexOptions{SearchInStore: o.SearchInStore, Deadline: s.Deadline, Batch: s.Batch,
		Logger: o.Logger}
	if o.OpenVectors != nil {
		k, err := o.OpenVectors()
		if err != nil {
			return err
		}
		l.Vectors = k
		m.closers = append(m.closers, k.Close)
	}
	m.embeddings = index.NewEmbeddingIndex(embedder, l)
	return nil
}

// openEmbedder returns the embedder and a function that closes it.
func (o ModelOptions) openEmbedder() (index.Embedder, func() error, error) {
	if o.Embedder != nil {
		return o.Embedder, closeNothing, nil
	}
	s := o.Settings.Embedding
	e, err := NewEmbeddingClient(EmbeddingOptions{
		Endpoint: Endpoint{BaseURL: s.BaseURL, FindKey: o.KeyFinder(s.Key), Timeout: s.Timeout},
		Provider: s.Provider, Model: s.Model, Dimensions: s.Dimensions,
		QueryPrefix: s.QueryPrefix, DocumentPrefix: s.DocumentPrefix, Batch: s.Batch,
	})
	if err != nil {
		return nil, nil, err
	}
	return e, e.Close, nil
}

func (m *ToolModels) openRerank(o ModelOptions) error {
	if o.Reranker == nil && isRerankUnset(o.Settings.Rerank) {
		return nil
	}
	reranker, end, err := o.openReranker()
	if err != nil {
		return err
	}
	m.closers = append(m.closers, end)
	s := o.Settings.Rerank
	m.reranker = index.NewHitReranker(reranker, index.HitRerankerOptions{MaxHits: s.Top, Deadline: s.Timeout,
		Logger: o.Logger})
	return nil
}

// openReranker returns the reranker and a function that closes it.
func (o ModelOptions) openReranker() (index.Reranker, func() error, error) {
	if o.Reranker != nil {
		return o.Reranker, closeNothing, nil
	}
	s := o.Settings.Rerank
	r, err := NewRerankClient(RerankOptions{
		Endpoint: Endpoint{BaseURL: s.URL, FindKey: o.KeyFinder(s.Key), Timeout: s.Timeout},
		Kind:     s.Kind, Model: s.Model,
	})
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

func closeNothing() error { return nil }

// isRerankUnset reports whether no reranker setting is set.
func isRerankUnset(s config.RerankModel) bool {
	return s.Key.IsZero() && cmp.Or(s.URL, s.Kind, s.Model) == "" && s.Top == 0 && s.Timeout == 0
}

// isEmbeddingUnset reports whether no embedding setting is set.
func isEmbeddingUnset(s config.EmbeddingModel) bool {
	return s.Key.IsZero() && cmp.Or(s.Provider, s.BaseURL, s.Model, s.QueryPrefix, s.DocumentPrefix) == "" &&
		s.Dimensions == 0 && s.Deadline == 0 && s.Timeout == 0 && s.Batch == 0
}

// KeyFinder returns a function that resolves a key, or nil if there is no key.
func (o ModelOptions) KeyFinder(k config.SecretRef) func(context.Context) (drawbridge.Secret, error) {
	if k.IsZero() {
		return nil
	}
	return func(ctx context.Context) (drawbridge.Secret, error) {
		if len(k.Missing) > 0 {
			return drawbridge.Secret{}, fmt.Errorf("it needs %s, which is not set", strings.Join(k.Missing, ", "))
		}
		var b strings.Builder
		for _, p := range k.Parts {
			text := p.Text
			if p.Kind != config.LiteralPart {
				var err error
				if text, err = o.Resolver.Value(ctx, secrets.ReferenceKind(p.Kind), p.Text, o.Environ); err != nil {
					return drawbridge.Secret{}, err
				}
			}
			b.WriteString(text)
		}
		key := b.String()
		if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return drawbridge.Secret{}, errors.New("what was found has a line break or another control character in it")
		}
		if o.Known != nil {
			o.Known.Note(key)
		}
		return drawbridge.NewSecret(key), nil
	}
}

// IndexOptions returns the options that make a tool index use the models for its ranking.
func (m *ToolModels) IndexOptions() index.Options {
	if m == nil {
		return index.Options{}
	}
	o := index.Options{Reranker: m.reranker}
	if m.embeddings != nil {
		o.Remote = m.embeddings
	}
	return o
}

// EmbeddingIndex returns the index of the tools' vectors, or nil if there is no embedding model.
func (m *ToolModels) EmbeddingIndex() *index.EmbeddingIndex {
	if m == nil {
		return nil
	}
	return m.embeddings
}

// Status returns the status of the models.
func (m *ToolModels) Status() (s ModelStatus) {
	if m == nil {
		return s
	}
	if m.embeddings != nil {
		now := m.embeddings.Status()
		s.Embedding = &now
	}
	if m.reranker != nil {
		now := m.reranker.Status()
		s.Rerank = &now
	}
	return s
}

// Run computes the vectors of tools in the background until ctx ends. Without an embedding model, it returns nil at
// once.
func (m *ToolModels) Run(ctx context.Context) error {
	if m == nil || m.embeddings == nil {
		return nil
	}
	return m.embeddings.Run(ctx)
}

// Close closes connections and the store of vectors. It must be called after Run has returned.
func (m *ToolModels) Close() error {
	if m == nil {
		return nil
	}
	var errs []error
	for _, end := range m.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
