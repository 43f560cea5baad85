package cli

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/shield"
)

// trust gives how far each configured server is trusted, after forgiving the one that is named.
func (a *app) trust(ctx context.Context, reset drawbridge.ServerID) ([]shield.Trusted, error) {
	set, err := a.configuration(ctx)
	if err != nil {
		return nil, err
	}
	db, err := a.openStore(ctx, set)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return shield.ReadTrust(ctx, db, set, reset, a.roster().Reload)
}
