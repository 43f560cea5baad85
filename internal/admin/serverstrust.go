package admin

import (
	"context"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// A ServerTrust is the trust score of one server, and the events that changed the score, newest first.
type ServerTrust struct {
	Server drawbridge.ServerID
	drawbridge.Trust
	Reasons []trust.Event
}

// ServerTrust returns the trust score of each server that can be started; nil if the settings turn trust scores off. If
// server is not empty, it returns only the score of that server. If that server is not configured, it returns all
// stored scores that were recorded for a server of this name. If reset is set, it first restores the full score of each
// server that it returns, and reloads the running servers. If there is no store, the error is a *NoStoreError.
func (r *Service) ServerTrust(ctx context.Context, server drawbridge.ServerID, reset bool) ([]ServerTrust, error) {
	set, db, err := r.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	book, err := gateway.ReadTrustRecords(ctx, db, set.Settings)
	if book == nil || err != nil {
		return nil, err
	}
	all := []ServerTrust{}
	rows := set.Mountable()
	for _, row := range rows {
		if server != "" && row.ID != server {
			continue
		}
		if reset {
			if err := r.resetTrust(ctx, row.ID, func() error { return book.Reset(ctx, row) }); err != nil {
				return nil, err
			}
		}
		t, reasons := book.Lookup(row)
		all = append(all, ServerTrust{Server: row.ID, Trust: t, Reasons: reasons})
	}
	if server == "" || len(all) > 0 {
		return all, nil
	}
	for _, account := range book.UnconfiguredAccounts(server, rows) {
		if reset {
			err := r.resetTrust(ctx, server, func() error { return book.ResetAccount(ctx, account, server) })
			if err != nil {
				return nil, err
			}
		}
		t, reasons := book.LookupAccount(account, "")
		all = append(all, ServerTrust{Server: server, Trust: t, Reasons: reasons})
	}
	return all, nil
}

// resetTrust calls reset, which restores the full trust score of a server, and records the action in the audit. Then it
// reloads the running servers, so that they use the new score.
func (r *Service) resetTrust(ctx context.Context, id drawbridge.ServerID, reset func() error) error {
	if err := r.recordAction(gateway.AdminAction{Command: "shield trust --reset", Server: id}, reset); err != nil {
		return err
	}
	if _, err := r.ReloadServers(ctx); err != nil {
		return fmt.Errorf("tell the hub: %w", err)
	}
	return nil
}

// trustOfServer returns the trust score of the server of a row; nil if book is nil, which means that trust scores are
// turned off.
func trustOfServer(book *gateway.TrustRecords, row config.Server) *drawbridge.Trust {
	if book == nil {
		return nil
	}
	t, _ := book.Lookup(row)
	return &t
}
