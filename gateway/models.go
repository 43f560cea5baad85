package gateway

import (
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway/models"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// A ModelStatus says how the models are that run elsewhere.
type ModelStatus = models.Status

// openModels opens the models of the settings; vectors keeps what the one that embeds makes, and nil is memory.
func openModels(c Config, s config.Settings, vault *secrets.Vault, vectors index.Vectors) (*models.Models, error) {
	return models.Open(models.Options{
		Settings: s.Models, Embedder: c.Embedder, Reranker: c.Reranker, Vectors: vectors,
		Resolver: &secrets.Resolver{Keeper: vault.Values()}, Environ: c.Environ, Known: vault.Known(), Logger: c.Logger,
	})
}

// Models says how the models are by which tools are found, beside words.
func (g *Gateway) Models() ModelStatus { return g.ground.models.Status() }

// Library gives what has tools embedded: nil where no model is set.
func (g *Gateway) Library() *index.Library { return g.ground.models.Library() }
