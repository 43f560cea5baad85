package gateway

import (
	"context"
	"os"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// PruneVectors deletes vectors in Drawbridge's own store that are not needed any more, and returns their number. These
// are the vectors of models that are not configured, or all vectors if a separate vector store is configured. It does
// not delete vectors in a separate vector store, which may have other users.
func (g *Gateway) PruneVectors(ctx context.Context) (dropped int64, err error) {
	g.mu.Lock()
	elsewhere := len(g.set.Settings.Vectors.Store) > 0
	g.mu.Unlock()
	var model string
	if now := g.ModelStatus().Embedding; now != nil && !elsewhere {
		model = now.Model
	}
	return g.shared.db.DropOtherVectors(ctx, model)
}

// OpenVectors returns the vector store of the settings. The vector store is connected on first use, and must be closed
// before db. kept looks up stored secrets. Only Environ of c is used. An error with the code InvalidInput means an
// invalid URL.
func OpenVectors(ctx context.Context, c Config, s config.Settings, db *store.DB, kept secrets.SecretGetter) (
	*store.LazyVectors, error) {
	environ := c.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return store.NewLazyVectors(ctx, store.LazyVectorOptions{Settings: s.Vectors, Store: db, Secrets: kept,
		Environ: environ})
}
