package gateway

import (
	"context"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/index"
)

// discovery is what counts of how cards are found: the program's own, else that of the settings.
func (r Reading) discovery() config.Discovery {
	if r.c.Discovery != nil {
		return *r.c.Discovery
	}
	return r.set.Settings.Discovery
}

// discovery is that as the deck has it, with what cards are ranked by besides words.
func discovery(d config.Discovery, by index.Options, log *slog.Logger) deck.Discovery {
	by.Least = d.MinScore
	return deck.Discovery{
		Mode: deck.Mode(d.Mode), Off: d.Enabled != nil && !*d.Enabled, TopK: d.TopK, Relative: d.RelativeScore,
		Always: d.AlwaysInclude, SearchAbove: d.SearchAbove, Index: by,
		TellSchemas: d.ForwardOutputSchema != nil && *d.ForwardOutputSchema, SchemaHint: d.OutputSchemaHintBytes, Logger: log,
	}
}

// Turn gives what a model that acts for a caller is shown when it is asked something: of many cards those that are pinned, that
// were called lately, and that answer it, as the settings want it. The bytes are the same for as long as the cards are.
func (g *Gateway) Turn(ctx context.Context, caller drawbridge.Caller, t deck.Turn) deck.Definitions {
	return g.deck.Finding(caller).Turn(ctx, t)
}
