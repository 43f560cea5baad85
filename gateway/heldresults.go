package gateway

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// heldResults keeps results that are held back in the store, where "drawbridge shield results" finds them.
type heldResults struct{ db *store.DB }

var _ deck.ResultHolder = heldResults{}

// Hold keeps a result.
func (h heldResults) Hold(ctx context.Context, r deck.HeldResult) (id string, err error) {
	id = strings.ToLower(rand.Text()[:8])
	return id, h.db.HoldResult(ctx, store.HeldResult{
		ID: id, Principal: r.Principal, Card: r.Card, Method: r.Method, Server: r.Server, Rules: r.Rules,
		Result: r.Result,
	})
}

// holdsFlagged says whether results of a row's server are held back in which rules are met: its own word, else the
// settings'. What a project brings cannot take that from a person who wants it.
func (g *Gateway) holdsFlagged(row config.Server) bool {
	wanted := g.set.Settings.Shield.HoldFlagged
	always := wanted != nil && *wanted
	if row.HoldFlagged == nil || always && row.Origin.Kind == config.OriginProject {
		return always
	}
	return *row.HoldFlagged
}
