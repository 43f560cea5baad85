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

// A ModelStatus is the status of the remote models.
type ModelStatus = llm.ModelStatus

// A ModelCheckup is the result of a test request to a model.
type ModelCheckup = llm.CheckResult

// modelOptions returns the options of the models. kept looks up stored secrets. If the settings configure a vector
// store, searches run in that store.
func modelOptions(c Config, s config.Settings, kept secrets.SecretGetter) llm.ModelOptions {
	return llm.ModelOptions{
		Settings: s.Models, Embedder: c.Embedder, Reranker: c.Reranker, SearchInStore: len(s.Vectors.Store) > 0,
		Resolver: &secrets.Resolver{Keychain: kept}, Environ: c.Environ, Logger: c.Logger,
	}
}

// openModels opens the models of the settings. It returns nil if the settings configure no model.
func openModels(ctx context.Context, c Config, s config.Settings, vault *secrets.Vault, db *store.DB) (
	*llm.ToolModels, error) {
	o := modelOptions(c, s, vault.UserSecrets())
	o.Known = vault.Known()
	o.OpenVectors = func() (llm.VectorStoreCloser, error) { return OpenVectors(ctx, c, s, db, vault.UserSecrets()) }
	return llm.OpenModels(o)
}

// CheckModels sends a test request to each model of the settings and returns the results. The API keys of some models
// are printed by a command. CheckModels runs these commands and tests these models only if commands is set. Of c it
// uses only Environ, Embedder, Reranker and Logger. kept looks up stored secrets.
func CheckModels(ctx context.Context, c Config, s config.Settings, kept secrets.SecretGetter,
	commands bool) []ModelCheckup {
	return llm.CheckModels(ctx, modelOptions(c, s, kept), commands)
}

// OpenChatModels returns the language models of the settings and of the built-in providers. Of c it uses only LookupEnv
// and Environ. kept looks up stored secrets. Keys that are found are added to known, which may be nil.
func OpenChatModels(c Config, s config.Settings, kept secrets.SecretGetter, known *secrets.KnownSecrets) (
	*llm.ChatModels, error) {
	return llm.OpenChatModels(llm.ChatOptions{Agent: s.Agent, Providers: s.Providers, LookupEnv: c.LookupEnv,
		Resolver: &secrets.Resolver{Keychain: kept}, Environ: c.Environ, Known: known})
}

// ModelStatus returns the status of the models that the search for tools uses.
func (g *Gateway) ModelStatus() ModelStatus { return g.shared.ModelStatus() }

// ModelStatus returns the status of the models that all gateways on g share.
func (g *Shared) ModelStatus() ModelStatus { return g.models.Status() }

// Library returns the index of embedded tools, or nil if no embedding model is set.
func (g *Gateway) Library() *index.EmbeddingIndex { return g.shared.models.EmbeddingIndex() }

// embedCards embeds the texts of all cards now and after each change of the tools, until ctx ends. Searches then need
// not wait for the embedding. It embeds the cards of the owner, which are all cards; searches of other callers use the
// same embeddings.
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
