package gateway

import (
	"context"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// discoverySettings is what counts of how cards are found: the program's own, else that of the settings.
func (r LoadedConfig) discoverySettings() config.ToolDiscovery {
	if r.config.Discovery != nil {
		return *r.config.Discovery
	}
	return r.set.Settings.Discovery
}

// deckDiscovery is that as the deck has it, with what cards are ranked by besides words.
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

// ToolsForTurn gives what a model that acts for a caller is shown when it is asked something: of many cards those that
// are pinned, that were called lately, and that answer it, as the settings want it. The bytes are the same for as long
// as the cards are.
func (g *Gateway) ToolsForTurn(ctx context.Context, caller drawbridge.Caller, t deck.ModelTurn) deck.ToolDefinitions {
	return g.deck.SearchView(caller).DefinitionsFor(ctx, t)
}
