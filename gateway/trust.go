package gateway

import (
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// openTrustAccounts opens the trust accounts of servers. It returns nil if the settings turn them off.
func openTrustAccounts(ctx context.Context, c Config, s config.Settings, db *store.DB) (*vetting.TrustAccounts, error) {
	if s.Shield.Enabled != nil && !*s.Shield.Enabled {
		return nil, nil
	}
	b := vetting.NewTrustAccounts(db, vetting.TrustOptions{Rules: trust.ScoreRules{Threshold: s.Shield.Threshold,
		HalfLife: s.Shield.HalfLife}, Logger: c.Logger})
	return b, b.Load(ctx)
}

// watchQuarantines enrols servers again when their quarantine begins or ends, until stop is called.
func (g *Gateway) watchQuarantines() (stop func()) {
	if g.shared.trustAccounts == nil {
		return func() {}
	}
	return g.shared.trustAccounts.OnQuarantineChange(func(ctx context.Context, account string) {
		g.serverTrust.LogQuarantine(account)
		// without servers nothing is configured yet: the first enrolment will check
		for _, id := range g.serverTrust.ServersOf(account) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quarantineTimeout)
			if err := g.enroller.reenrol(ctx, id); err != nil {
				g.log.Error("enrol a server after its quarantine changed", "server", id, "err", err)
			}
			g.saveVetted(ctx, id)
			cancel()
		}
	})
}

// quarantineTimeout bounds the enrolment after a change of quarantine.
const quarantineTimeout = 30 * time.Second

// TrustRecords reads and resets the trust of servers in the store, without a gateway.
type TrustRecords struct{ accounts *vetting.TrustAccounts }

// ReadTrustRecords reads the trust accounts in a store. It returns nil if the settings turn them off. The error is the
// store's.
func ReadTrustRecords(ctx context.Context, db *store.DB, s config.Settings) (*TrustRecords, error) {
	b, err := openTrustAccounts(ctx, Config{}.withLogger(), s, db)
	if b == nil || err != nil {
		return nil, err
	}
	return &TrustRecords{b}, nil
}

// Lookup returns the trust of a server and its reasons, the newest first.
func (t *TrustRecords) Lookup(row config.Server) (drawbridge.Trust, []trust.Event) {
	s := t.accounts.Status(vetting.TrustAccountName(row))
	return s.Trust(trust.Level(row.Trust)), s.Reasons
}

// Reset clears the account of a server. A running gateway reads that when it reloads. The error is the store's.
func (t *TrustRecords) Reset(ctx context.Context, row config.Server) error {
	return t.accounts.Reset(ctx, vetting.TrustAccountName(row), string(row.ID))
}
