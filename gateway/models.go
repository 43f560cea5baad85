package gateway

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/models"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// A ModelStatus says how the models are that run elsewhere.
type ModelStatus = models.Status

// A ModelCheckup is what came of asking a model something small.
type ModelCheckup = models.Checkup

// modelOptions are what models are opened with. Vectors are kept where the settings say; a place that searches by itself is
// searched there.
func modelOptions(c Config, s config.Settings, kept secrets.Keeper) models.Options {
	return models.Options{
		Settings: s.Models, Embedder: c.Embedder, Reranker: c.Reranker, Remote: len(s.Vectors.Store) > 0,
		Resolver: &secrets.Resolver{Keeper: kept}, Environ: c.Environ, Logger: c.Logger,
	}
}

// openModels opens the models of the settings: nil where there are none.
func openModels(c Config, s config.Settings, vault *secrets.Vault, db *store.DB) (*models.Models, error) {
	o := modelOptions(c, s, vault.Values())
	o.Known = vault.Known()
	o.Keeper = func() (models.Keeper, error) { return OpenVectors(c, s, db, vault.Values()) }
	return models.Open(o)
}

// CheckModels asks the models of the settings something small; with commands also those whose keys come from commands. Of the
// configuration it takes Environ.
func CheckModels(ctx context.Context, c Config, s config.Settings, kept secrets.Keeper, commands bool) []ModelCheckup {
	return models.Check(ctx, modelOptions(c, s, kept), commands)
}

// Models says how the models are by which tools are found, beside words.
func (g *Gateway) Models() ModelStatus { return g.ground.Models() }

// Models says it of all gateways that stand on the ground.
func (g *Ground) Models() ModelStatus { return g.models.Status() }

// Library gives what has tools embedded: nil where no model is set.
func (g *Gateway) Library() *index.Library { return g.ground.models.Library() }

// embedAhead has all cards known to the model that embeds them, as they come, so that it need not wait for a question. All are
// the owner's; what a question of somebody else's is answered from is theirs alone.
func (g *Gateway) embedAhead(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	defer g.deck.OnEvent(func(e deck.Event) {
		if e.Kind != deck.ToolsChanged {
			return
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			g.deck.Finding(g.owner).Build()
		}
	}
}
