package admin

import (
	"context"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// A ServerTrust is the trust in one server and the events that changed its score, newest first.
type ServerTrust struct {
	Server drawbridge.ServerID
	drawbridge.Trust
	Reasons []trust.Event
}

// ServerTrust returns the trust in each server that may be mounted; nil where trust is not recorded. The server named
// by reset, if any, gets its full score back first, and the running servers reload. The error is a *NoStoreError
// where no store exists.
func (r *Service) ServerTrust(ctx context.Context, reset drawbridge.ServerID) ([]ServerTrust, error) {
	set, db, err := r.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	book, err := gateway.ReadTrustRecords(ctx, db, set.Settings)
	if book == nil || err != nil {
		return nil, err
	}
	var all []ServerTrust
	for _, row := range set.Mountable() {
		if row.ID == reset {
			act := gateway.AdminAction{Command: "shield trust --reset", Server: row.ID}
			if err := r.recordAction(act, func() error { return book.Reset(ctx, row) }); err != nil {
				return nil, err
			}
			if _, err := r.ReloadServers(ctx); err != nil {
				return nil, fmt.Errorf("tell the hub: %w", err)
			}
		}
		t, reasons := book.Lookup(row)
		all = append(all, ServerTrust{Server: row.ID, Trust: t, Reasons: reasons})
	}
	return all, nil
}

// trustOfServer returns the trust in the server of a row; nil where trust is not recorded.
func trustOfServer(book *gateway.TrustRecords, row config.Server) *drawbridge.Trust {
	if book == nil {
		return nil
	}
	t, _ := book.Lookup(row)
	return &t
}
