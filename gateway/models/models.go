// Package models opens the models that a person's settings name: the one that gives tools their places by meaning, and the one that
// judges how well they answer.
//
// It promises that to open asks nothing and finds no key: both happen when a model is first needed. What was found as a key is
// known to those who keep secrets out of records.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/model"
	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// The tables of the settings.
const (
	embeddingTable = "mcp.tool_discovery.embedding"
	rerankTable    = "mcp.tool_discovery.rerank"
)

// Options are what models are opened with.
type Options struct {
	Settings config.Models
	// Embedder and Reranker take the places of those that the settings name; nil leaves it to them.
	Embedder index.Embedder
	Reranker index.Reranker
	// Keeper opens what keeps vectors, where there is a model that makes some; nil is memory. Remote has them searched there.
	Keeper func() (Keeper, error)
	Remote bool
	// Resolver finds what keys refer to, Environ is the environment in which commands do; Known hears what was found.
	Resolver *secrets.Resolver
	Environ  []string
	Known    *secrets.Known
	// Logger is told when a model goes away and comes back; nil is silence.
	Logger *slog.Logger
}

// A Keeper keeps vectors until it is closed.
type Keeper interface {
	index.Vectors
	Close() error
}

// Models are the models, opened. A nil *Models has none.
type Models struct {
	library *index.Library
	judge   *index.Judge
	closers []func() error
}

// A Status says how the models are; nil is one that there is not.
type Status struct {
	Embedding *index.LibraryStatus `json:"embedding,omitempty"`
	Rerank    *index.JudgeStatus   `json:"rerank,omitempty"`
}

// Open opens the models that are set: nil where none is. The error is a *drawbridge.Fault with the code InvalidInput, for settings
// that make no sense together.
func Open(o Options) (*Models, error) {
	var m Models
	if err := m.openEmbedding(o); err != nil {
		return nil, errors.Join(wrong(embeddingTable, err), m.Close())
	}
	if err := m.openRerank(o); err != nil {
		return nil, errors.Join(wrong(rerankTable, err), m.Close())
	}
	if m.library == nil && m.judge == nil {
		return nil, nil
	}
	return &m, nil
}

func wrong(table string, err error) error {
	if fault, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return fault // of what keeps vectors, which says so
	}
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read [" + table + "] in drawbridge.toml", Err: err,
	}
}

func (m *Models) openEmbedding(o Options) error {
	if o.Embedder == nil && isZero(o.Settings.Embedding) {
		return nil
	}
	embedder, end, err := o.embedder()
	if err != nil {
		return err
	}
	m.closers = append(m.closers, end)
	s := o.Settings.Embedding
	l := index.LibraryOptions{Remote: o.Remote, Deadline: s.Deadline, Batch: s.Batch, Logger: o.Logger}
	if o.Keeper != nil {
		k, err := o.Keeper()
		if err != nil {
			return err
		}
		l.Vectors = k
		m.closers = append(m.closers, k.Close)
	}
	m.library = index.NewLibrary(embedder, l)
	return nil
}

// embedder gives the model that embeds, and what ends it.
func (o Options) embedder() (index.Embedder, func() error, error) {
	if o.Embedder != nil {
		return o.Embedder, nothing, nil
	}
	s := o.Settings.Embedding
	e, err := model.NewEmbedder(model.EmbedderOptions{
		Account:  model.Account{BaseURL: s.BaseURL, Key: o.key(s.Key), Timeout: s.Timeout},
		Provider: s.Provider, Model: s.Model, Dimensions: s.Dimensions,
		QueryPrefix: s.QueryPrefix, DocumentPrefix: s.DocumentPrefix, Batch: s.Batch,
	})
	if err != nil {
		return nil, nil, err
	}
	return e, e.Close, nil
}

func (m *Models) openRerank(o Options) error {
	if o.Reranker == nil && noRerank(o.Settings.Rerank) {
		return nil
	}
	reranker, end, err := o.reranker()
	if err != nil {
		return err
	}
	m.closers = append(m.closers, end)
	s := o.Settings.Rerank
	m.judge = index.NewJudge(reranker, index.JudgeOptions{Most: s.Top, Deadline: s.Timeout, Logger: o.Logger})
	return nil
}

// reranker gives the model that judges, and what ends it.
func (o Options) reranker() (index.Reranker, func() error, error) {
	if o.Reranker != nil {
		return o.Reranker, nothing, nil
	}
	s := o.Settings.Rerank
	r, err := model.NewReranker(model.RerankerOptions{
		Account: model.Account{BaseURL: s.URL, Key: o.key(s.Key), Timeout: s.Timeout}, Kind: s.Kind, Model: s.Model,
	})
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

func nothing() error { return nil }

// noRerank says whether nothing is set.
func noRerank(s config.Rerank) bool {
	return s.Key.IsZero() && cmp.Or(s.URL, s.Kind, s.Model) == "" && s.Top == 0 && s.Timeout == 0
}

// isZero says whether nothing is set.
func isZero(s config.Embedding) bool {
	return s.Key.IsZero() && cmp.Or(s.Provider, s.BaseURL, s.Model, s.QueryPrefix, s.DocumentPrefix) == "" &&
		s.Dimensions == 0 && s.Deadline == 0 && s.Timeout == 0 && s.Batch == 0
}

// key gives what finds a key: nil where there is none.
func (o Options) key(k config.Key) func(context.Context) (drawbridge.Secret, error) {
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
			if p.Kind != config.Literal {
				var err error
				if text, err = o.Resolver.Value(ctx, secrets.Kind(p.Kind), p.Text, o.Environ); err != nil {
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

// Index gives what an index ranks by besides words.
func (m *Models) Index() index.Options {
	if m == nil {
		return index.Options{}
	}
	o := index.Options{Judge: m.judge}
	if m.library != nil {
		o.Far = m.library
	}
	return o
}

// Library gives what embeds; nil where there is no model that does.
func (m *Models) Library() *index.Library {
	if m == nil {
		return nil
	}
	return m.library
}

// Status says how they are.
func (m *Models) Status() (s Status) {
	if m == nil {
		return s
	}
	if m.library != nil {
		now := m.library.Status()
		s.Embedding = &now
	}
	if m.judge != nil {
		now := m.judge.Status()
		s.Rerank = &now
	}
	return s
}

// Run embeds in the background, until ctx ends.
func (m *Models) Run(ctx context.Context) error {
	if m == nil || m.library == nil {
		return nil
	}
	return m.library.Run(ctx)
}

// Close lets go of connections, and closes what keeps vectors, once Run is over.
func (m *Models) Close() error {
	if m == nil {
		return nil
	}
	var errs []error
	for _, end := range m.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
