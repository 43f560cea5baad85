package gateway

import (
	"context"
	"os"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// PruneVectors drops what the store keeps of models by which tools are found no more, and says how many vectors that
// were. What is kept elsewhere stays: others may find by it.
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

// OpenVectors gives what keeps the vectors of tools where the settings say so: in the store, or elsewhere. Nobody is
// connected to before it is used; it is to be closed before the store is. Of the configuration it takes Environ. Code
// InvalidInput means a URL that leads nowhere.
func OpenVectors(c Config, s config.Settings, db *store.DB, kept secrets.SecretGetter) (*store.LazyVectors, error) {
	environ := c.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return store.NewLazyVectors(store.LazyVectorOptions{Settings: s.Vectors, Store: db, Secrets: kept,
		Environ: environ})
}
