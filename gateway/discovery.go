package gateway

import (
	"context"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// discoverySettings returns Config.Discovery if it is set, else the discovery settings of the settings file.
func (r LoadedConfig) discoverySettings() config.ToolDiscovery {
	if r.config.Discovery != nil {
		return *r.config.Discovery
	}
	return r.set.Settings.Discovery
}

// deckDiscovery converts the discovery settings to the deck's options. by are the index options that the models
// determine.
func deckDiscovery(d config.ToolDiscovery, by index.Options, log *slog.Logger) deck.Discovery {
	by.MinCosine = d.MinScore
	var listsAll func(drawbridge.Caller) bool
	if len(d.Direct) > 0 {
		listsAll = deck.CallerFilter{Clients: d.Direct}.Selects
	}
	return deck.Discovery{ListsAll: listsAll,
		Mode: deck.ListMode(d.Mode), Disabled: d.Enabled != nil && !*d.Enabled, TopK: d.TopK,
		MinRelativeScore: d.RelativeScore,
		AlwaysListed:     d.AlwaysInclude, SearchAbove: d.SearchAbove, Index: by,
		DescribeSchemas: d.ForwardOutputSchema != nil && *d.ForwardOutputSchema,
		MaxSchemaHint:   d.OutputSchemaHintBytes, Logger: log,
	}
}

// ToolsForTurn returns the tool definitions for one turn of a model that acts for a caller. If there are many cards, it
// selects the pinned cards, which are always listed. It also selects the recently called cards, and the cards that
// match the turn. The settings control this selection. The bytes of a definition change only when the card changes.
func (g *Gateway) ToolsForTurn(ctx context.Context, caller drawbridge.Caller, t deck.ModelTurn) deck.ToolDefinitions {
	return g.deck.SearchView(caller).DefinitionsFor(ctx, t)
}
