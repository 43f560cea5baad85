package gateway

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/llm"
)

// A ModelStatus says how the models are that run elsewhere.
type ModelStatus = llm.ModelStatus

// A ModelCheckup is what came of asking a model something small.
type ModelCheckup = llm.CheckResult

// modelOptions are what models are opened with. Vectors are kept where the settings say; a place that searches by
// itself is searched there.
func modelOptions(c Config, s config.Settings, kept secrets.SecretGetter) llm.ModelOptions {
	return llm.ModelOptions{
		Settings: s.Models, Embedder: c.Embedder, Reranker: c.Reranker, SearchInStore: len(s.Vectors.Store) > 0,
		Resolver: &secrets.Resolver{Keychain: kept}, Environ: c.Environ, Logger: c.Logger,
	}
}

// openModels opens the models of the settings: nil where there are none.
func openModels(c Config, s config.Settings, vault *secrets.Vault, db *store.DB) (*llm.ToolModels, error) {
	o := modelOptions(c, s, vault.UserSecrets())
	o.Known = vault.Known()
	o.OpenVectors = func() (llm.VectorStoreCloser, error) { return OpenVectors(c, s, db, vault.UserSecrets()) }
	return llm.OpenModels(o)
}

// CheckModels asks the models of the settings something small; with commands also those whose keys come from commands.
// Of the configuration it takes Environ.
func CheckModels(ctx context.Context, c Config, s config.Settings, kept secrets.SecretGetter,
	commands bool) []ModelCheckup {
	return llm.CheckModels(ctx, modelOptions(c, s, kept), commands)
}

// ModelStatus says how the models are by which tools are found, beside words.
func (g *Gateway) ModelStatus() ModelStatus { return g.shared.ModelStatus() }

// ModelStatus says it of all gateways that stand on the ground.
func (g *Shared) ModelStatus() ModelStatus { return g.models.Status() }

// Library gives what has tools embedded: nil where no model is set.
func (g *Gateway) Library() *index.EmbeddingIndex { return g.shared.models.EmbeddingIndex() }

// embedCards has all cards known to the model that embeds them, as they come, so that it need not wait for a question.
// All are the owner's; what a question of somebody else's is answered from is theirs alone.
func (g *Gateway) embedCards(ctx context.Context) error {
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
			g.deck.SearchView(g.owner).BuildIndex()
		}
	}
}
