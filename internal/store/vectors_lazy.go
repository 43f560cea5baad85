package store

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// openVectorsTimeout is how long the references of a URL may take to be found.
const openVectorsTimeout = 30 * time.Second

// LazyVectorOptions are what a LazyVectors needs.
type LazyVectorOptions struct {
	// Settings say where vectors are; the zero value is the store.
	Settings config.VectorStoreSettings
	// Store is the gateway's.
	Store *DB
	// SearchTimeout is how long a search waits; 0 is defaultSearchTimeout.
	SearchTimeout time.Duration
	// Secrets resolves references to the keychain; nil resolves none.
	Secrets secrets.SecretGetter
	// Environ is the environment of commands that references name, as "name=value".
	Environ []string
}

// A LazyVectors keeps vectors where the settings say. It may be used from several goroutines.
type LazyVectors struct {
	o        LazyVectorOptions
	resolver secrets.Resolver
	// opening is held by who opens, or closes.
	opening chan struct{}

	// mu guards the fields below.
	mu     sync.Mutex
	open   *VectorStore
	closed bool
}

var (
	_ index.VectorStore     = (*LazyVectors)(nil)
	_ index.VectorForgetter = (*LazyVectors)(nil)
)

// NewLazyVectors makes a keeper. Code InvalidInput means a URL that leads nowhere, where that is known already.
func NewLazyVectors(ctx context.Context, o LazyVectorOptions) (*LazyVectors, error) {
	k := &LazyVectors{o: o, resolver: secrets.Resolver{Keychain: o.Secrets}, opening: make(chan struct{}, 1)}
	if k.NeedsResolving() {
		return k, nil
	}
	_, err := k.openOnce(ctx)
	return k, err
}

// NeedsResolving reports whether a part of the URL is resolved at the first use.
func (k *LazyVectors) NeedsResolving() bool {
	for _, p := range k.o.Settings.Store {
		if p.Kind != config.LiteralPart {
			return true
		}
	}
	return false
}

// RunsCommand reports whether a command supplies a part of the URL.
func (k *LazyVectors) RunsCommand() bool {
	for _, p := range k.o.Settings.Store {
		if p.Kind == config.CommandPart {
			return true
		}
	}
	return false
}

// Get implements [index.VectorStore].
func (k *LazyVectors) Get(ctx context.Context, model string, keys []index.TextKey) (map[index.TextKey][]float32,
	error) {
	v, err := k.openOnce(ctx)
	if err != nil {
		return nil, err
	}
	return v.Get(ctx, model, keys)
}

// Put implements [index.VectorStore].
func (k *LazyVectors) Put(ctx context.Context, model string, vectors map[index.TextKey][]float32) error {
	v, err := k.openOnce(ctx)
	if err != nil {
		return err
	}
	return v.Put(ctx, model, vectors)
}

// Forget implements [index.VectorForgetter].
func (k *LazyVectors) Forget(ctx context.Context, model string) error {
	v, err := k.openOnce(ctx)
	if err != nil {
		return err
	}
	return v.Forget(ctx, model)
}

// Nearest implements [index.VectorStore]. It does not wait for references to be found longer than for an answer.
func (k *LazyVectors) Nearest(ctx context.Context, model string, question []float32, most int, among []index.TextKey) (
	[]index.Neighbor, error) {
	soon, cancel := context.WithTimeout(ctx, cmp.Or(k.o.SearchTimeout, defaultSearchTimeout))
	defer cancel()
	v, err := k.openOnce(soon)
	if err != nil {
		return nil, err
	}
	return v.Nearest(ctx, model, question, most, among)
}

// Check returns an error if the place does not answer, and the place's name for people.
func (k *LazyVectors) Check(ctx context.Context) (name string, err error) {
	v, err := k.openOnce(ctx)
	if err != nil {
		return "", err
	}
	return v.Name(), v.Check(ctx)
}

// Close closes the place, and leaves the store open. Later calls are refused.
func (k *LazyVectors) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.open
	k.open, k.closed = nil, true
	if v == nil {
		return nil
	}
	return v.Close()
}

// openOnce returns the place, and opens it at the first call.
func (k *LazyVectors) openOnce(ctx context.Context) (*VectorStore, error) {
	if v, err := k.currentOrSet(nil); v != nil || err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, openVectorsTimeout)
	defer cancel()
	select {
	case k.opening <- struct{}{}:
		defer func() { <-k.opening }()
	case <-ctx.Done():
		return nil, openVectorsFault(drawbridge.Transient, ctx.Err())
	}
	if v, err := k.currentOrSet(nil); v != nil || err != nil {
		return v, err
	}
	if len(k.o.Settings.Store) == 0 {
		return k.currentOrSet(k.o.Store.VectorStore())
	}
	location, err := k.resolveURL(ctx)
	if err != nil {
		return nil, openVectorsFault(drawbridge.AuthFailure, err)
	}
	v, err := OpenVectorStore(location, VectorOptions{Collection: k.o.Settings.Collection,
		SearchTimeout: k.o.SearchTimeout})
	if err != nil {
		return nil, err
	}
	return k.currentOrSet(v)
}

// currentOrSet returns the open place; fresh becomes it, unless there is one or the LazyVectors was closed.
func (k *LazyVectors) currentOrSet(fresh *VectorStore) (*VectorStore, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		err := errors.New("it was closed")
		if fresh != nil {
			err = errors.Join(err, fresh.Close())
		}
		return nil, openVectorsFault(drawbridge.Transient, err)
	}
	k.open = cmp.Or(k.open, fresh)
	return k.open, nil
}

// resolveURL builds the URL. Resolved parts are escaped: a password may have any characters.
func (k *LazyVectors) resolveURL(ctx context.Context) (string, error) {
	var b strings.Builder
	for _, p := range k.o.Settings.Store {
		text := p.Text
		if p.Kind != config.LiteralPart {
			found, err := k.resolver.Value(ctx, secrets.ReferenceKind(p.Kind), p.Text, k.o.Environ)
			if err != nil {
				return "", err
			}
			text = strings.ReplaceAll(url.QueryEscape(found), "+", "%20")
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func openVectorsFault(code drawbridge.FaultCode, err error) *drawbridge.Fault {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: code, Step: "open the vector store", Err: err,
		Next: "look at vector_store in drawbridge.toml",
	}
}
