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

// openVectorsTimeout is the time limit for opening the vector store. This includes the time to replace the references
// in its URL by secrets.
const openVectorsTimeout = 30 * time.Second

// LazyVectorOptions are the options of a LazyVectors.
type LazyVectorOptions struct {
	// Settings contain the URL of the vector store, which may contain references to secrets. The zero value means
	// that vectors are in the gateway's store.
	Settings config.VectorStoreSettings
	// Store is the gateway's store.
	Store *DB
	// SearchTimeout is the time limit of a search; 0 means defaultSearchTimeout.
	SearchTimeout time.Duration
	// Secrets returns the secrets in the keychain, for references of that kind in the URL. If it is nil, such
	// references cannot be resolved.
	Secrets secrets.SecretGetter
	// Environ is the environment, as "name=value", of commands. A reference in the URL may be a command whose output
	// is the secret.
	Environ []string
}

// A LazyVectors is a vector store that is opened at the first use, at the URL in the settings. It is safe for
// concurrent use.
type LazyVectors struct {
	o        LazyVectorOptions
	resolver secrets.Resolver
	// opening is a semaphore: it contains one element while a goroutine opens the vector store.
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

// NewLazyVectors returns a LazyVectors. If the URL contains no references, the vector store is opened now, and a
// fault with code InvalidInput means that the URL is invalid.
func NewLazyVectors(ctx context.Context, o LazyVectorOptions) (*LazyVectors, error) {
	k := &LazyVectors{o: o, resolver: secrets.Resolver{Keychain: o.Secrets}, opening: make(chan struct{}, 1)}
	if k.NeedsResolving() {
		return k, nil
	}
	_, err := k.openOnce(ctx)
	return k, err
}

// NeedsResolving reports whether the URL contains a reference to a secret, which is resolved at the first use.
func (k *LazyVectors) NeedsResolving() bool {
	for _, p := range k.o.Settings.Store {
		if p.Kind != config.LiteralPart {
			return true
		}
	}
	return false
}

// RunsCommand reports whether a part of the URL is the output of a command.
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

// Nearest implements [index.VectorStore]. If the vector store is not open yet, Nearest waits until it is open. It
// waits at most for the time limit of a search.
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

// Check returns the address of the vector store for messages, and an error if it does not answer.
func (k *LazyVectors) Check(ctx context.Context) (name string, err error) {
	v, err := k.openOnce(ctx)
	if err != nil {
		return "", err
	}
	return v.Name(), v.Check(ctx)
}

// Close closes the vector store. It does not close the gateway's store, even if the vectors are in its tables. Later
// calls of the other methods return an error.
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

// openOnce returns the vector store. It opens the vector store at the first call.
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

// currentOrSet returns the open vector store. If none is open, it sets fresh, which may be nil, as the open vector
// store. If the LazyVectors was closed, currentOrSet closes fresh and returns an error.
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

// resolveURL returns the URL in the settings, with each reference replaced by its secret. The secrets are escaped,
// because a password may contain any characters.
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
