package cli

import (
	"context"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/shield"
)

// trustOf says how far the server of a row is trusted; nil where nobody keeps an account of it.
func trustOf(book *gateway.TrustBook, row config.Server) *drawbridge.Trust {
	if book == nil {
		return nil
	}
	t, _ := book.Of(row)
	return &t
}

// trust gives how far each configured server is trusted. With reset it forgives that one first.
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
	book, err := gateway.ReadTrust(ctx, db, set.Settings)
	if book == nil || err != nil {
		return nil, err
	}
	var all []shield.Trusted
	for _, row := range set.Mountable() {
		if row.ID == reset {
			if err := book.Reset(ctx, row); err != nil {
				return nil, err
			}
			if _, err := a.roster().Reload(ctx); err != nil {
				return nil, fmt.Errorf("tell the hub: %w", err)
			}
		}
		t, reasons := book.Of(row)
		all = append(all, shield.Trusted{Server: row.ID, Trust: t, Reasons: reasons})
	}
	return all, nil
}
