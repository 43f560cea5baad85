package gateway

import (
	"context"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// discoverySettings returns Config.Discovery, or else that of the settings.
func (r LoadedConfig) discoverySettings() config.ToolDiscovery {
	if r.config.Discovery != nil {
		return *r.config.Discovery
	}
	return r.set.Settings.Discovery
}

// deckDiscovery converts the settings to those of the deck, and adds the index options of the models.
func deckDiscovery(d config.ToolDiscovery, by index.Options, log *slog.Logger) deck.Discovery {
	by.MinCosine = d.MinScore
	return deck.Discovery{
		Mode: deck.ListMode(d.Mode), Disabled: d.Enabled != nil && !*d.Enabled, TopK: d.TopK,
		MinRelativeScore: d.RelativeScore,
		AlwaysListed:     d.AlwaysInclude, SearchAbove: d.SearchAbove, Index: by,
		DescribeSchemas: d.ForwardOutputSchema != nil && *d.ForwardOutputSchema,
		MaxSchemaHint:   d.OutputSchemaHintBytes, Logger: log,
	}
}

// ToolsForTurn returns the tool definitions for one turn of a model that acts for a caller. Of many cards it selects
// those that are pinned, that were called lately, and that match the turn, by the settings. The bytes change only with
// the cards.
func (g *Gateway) ToolsForTurn(ctx context.Context, caller drawbridge.Caller, t deck.ModelTurn) deck.ToolDefinitions {
	return g.deck.SearchView(caller).DefinitionsFor(ctx, t)
}
