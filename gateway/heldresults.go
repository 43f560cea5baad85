package gateway

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// heldResults stores results that were withheld from callers. The command "drawbridge shield results" shows them.
type heldResults struct{ db *store.DB }

var _ deck.ResultHolder = heldResults{}

// Hold stores a result and returns its id.
func (h heldResults) Hold(ctx context.Context, r deck.HeldResult) (id string, err error) {
	id = strings.ToLower(rand.Text()[:8])
	return id, h.db.HoldResult(ctx, store.HeldResult{
		ID: id, Principal: r.Principal, Card: r.Card, Method: r.Method, Server: r.Server, Rules: r.Rules,
		Result: r.Result,
	})
}

// holdsFlagged reports whether flagged results of a server are withheld from callers. The server's configuration
// decides; without such a setting, the user's settings decide. If the user's settings turn withholding on, the
// configuration of a project cannot turn it off.
func (g *Gateway) holdsFlagged(row config.Server) bool {
	wanted := g.set.Settings.Shield.HoldFlagged
	always := wanted != nil && *wanted
	if row.HoldFlagged == nil || always && row.Origin.Kind == config.OriginProject {
		return always
	}
	return *row.HoldFlagged
}
