// Package keeper gives a gateway what keeps the vectors of its tools: the store, or the place that the settings name.
//
// It promises that nothing is looked up, and nobody connected to, before vectors are first asked for or kept; that what could
// not be found is looked for again the next time; and that no error has a value in it which was found.
package keeper

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
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// openTimeout is how long the references of a URL may take to be found.
const openTimeout = 30 * time.Second

// Options are what a keeper is made of.
type Options struct {
	// Settings say where vectors are; the zero value is the store.
	Settings config.Vectors
	// Store is the gateway's.
	Store *store.DB
	// Answer is how long a search waits; 0 is store.DefaultAnswer.
	Answer time.Duration
	// Secrets has what references to the keychain name; nil has nothing.
	Secrets secrets.Keeper
	// Environ is the environment of commands that references name, as "name=value".
	Environ []string
}

// A Keeper keeps vectors where the settings say. It may be used from several goroutines.
type Keeper struct {
	o        Options
	resolver secrets.Resolver
	// turn is held by who opens, or closes.
	turn chan struct{}

	// mu guards what follows.
	mu     sync.Mutex
	open   *store.Vectors
	closed bool
}

var (
	_ index.Vectors   = (*Keeper)(nil)
	_ index.Forgetter = (*Keeper)(nil)
)

// New makes a keeper. Code InvalidInput means a URL that leads nowhere, where that is known already.
func New(o Options) (*Keeper, error) {
	k := &Keeper{o: o, resolver: secrets.Resolver{Keeper: o.Secrets}, turn: make(chan struct{}, 1)}
	if k.Deferred() {
		return k, nil
	}
	_, err := k.vectors(context.Background())
	return k, err
}

// Deferred says whether the URL has a part that is found when it is first needed.
func (k *Keeper) Deferred() bool {
	for _, p := range k.o.Settings.Store {
		if p.Kind != config.Literal {
			return true
		}
	}
	return false
}

// Runs says whether a command has a part in the URL.
func (k *Keeper) Runs() bool {
	for _, p := range k.o.Settings.Store {
		if p.Kind == config.FromCommand {
			return true
		}
	}
	return false
}

// Have implements [index.Vectors].
func (k *Keeper) Have(ctx context.Context, model string, keys []index.Key) (map[index.Key][]float32, error) {
	v, err := k.vectors(ctx)
	if err != nil {
		return nil, err
	}
	return v.Have(ctx, model, keys)
}

// Keep implements [index.Vectors].
func (k *Keeper) Keep(ctx context.Context, model string, vectors map[index.Key][]float32) error {
	v, err := k.vectors(ctx)
	if err != nil {
		return err
	}
	return v.Keep(ctx, model, vectors)
}

// Forget implements [index.Forgetter].
func (k *Keeper) Forget(ctx context.Context, model string) error {
	v, err := k.vectors(ctx)
	if err != nil {
		return err
	}
	return v.Forget(ctx, model)
}

// Nearest implements [index.Vectors]. It does not wait for references to be found longer than for an answer.
func (k *Keeper) Nearest(ctx context.Context, model string, question []float32, most int, among []index.Key) ([]index.Near, error) {
	soon, cancel := context.WithTimeout(ctx, cmp.Or(k.o.Answer, store.DefaultAnswer))
	defer cancel()
	v, err := k.vectors(soon)
	if err != nil {
		return nil, err
	}
	return v.Nearest(ctx, model, question, most, among)
}

// Check says whether the place answers, and what is wrong if it does not, and gives its name for people.
func (k *Keeper) Check(ctx context.Context) (name string, err error) {
	v, err := k.vectors(ctx)
	if err != nil {
		return "", err
	}
	return v.Name(), v.Check(ctx)
}

// Close closes the place, and leaves the store open. What is asked afterwards is refused.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.open
	k.open, k.closed = nil, true
	if v == nil {
		return nil
	}
	return v.Close()
}

// vectors gives the place, and opens it where it is not yet.
func (k *Keeper) vectors(ctx context.Context) (*store.Vectors, error) {
	if v, err := k.opened(nil); v != nil || err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, fault(drawbridge.Transient, ctx.Err())
	}
	if v, err := k.opened(nil); v != nil || err != nil {
		return v, err
	}
	if len(k.o.Settings.Store) == 0 {
		return k.opened(k.o.Store.Vectors())
	}
	location, err := k.location(ctx)
	if err != nil {
		return nil, fault(drawbridge.AuthFailure, err)
	}
	v, err := store.OpenVectors(location, store.VectorOptions{Collection: k.o.Settings.Collection, Answer: k.o.Answer})
	if err != nil {
		return nil, err
	}
	return k.opened(v)
}

// opened gives the place; a new one becomes it, unless the keeper was closed meanwhile.
func (k *Keeper) opened(fresh *store.Vectors) (*store.Vectors, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		err := errors.New("it was closed")
		if fresh != nil {
			err = errors.Join(err, fresh.Close())
		}
		return nil, fault(drawbridge.Transient, err)
	}
	k.open = cmp.Or(k.open, fresh)
	return k.open, nil
}

// location puts the URL together. What is found is escaped: a password may have any characters.
func (k *Keeper) location(ctx context.Context) (string, error) {
	var b strings.Builder
	for _, p := range k.o.Settings.Store {
		text := p.Text
		if p.Kind != config.Literal {
			found, err := k.resolver.Value(ctx, secrets.Kind(p.Kind), p.Text, k.o.Environ)
			if err != nil {
				return "", err
			}
			text = strings.ReplaceAll(url.QueryEscape(found), "+", "%20")
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func fault(code drawbridge.FaultCode, err error) *drawbridge.Fault {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: code, Step: "open the vector store", Err: err,
		Next: "look at vector_store in drawbridge.toml",
	}
}
