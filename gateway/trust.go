package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// openTrustAccounts opens the trust accounts of servers. It returns nil if the settings turn trust accounts off.
func openTrustAccounts(ctx context.Context, c Config, s config.Settings, db *store.DB) (*vetting.TrustAccounts, error) {
	if s.Shield.Enabled != nil && !*s.Shield.Enabled {
		return nil, nil
	}
	b := vetting.NewTrustAccounts(db, vetting.TrustOptions{Rules: trust.ScoreRules{Threshold: s.Shield.Threshold,
		HalfLife: s.Shield.HalfLife}, Logger: c.Logger})
	return b, b.Load(ctx)
}

// watchQuarantines registers a function that enrols servers again when their quarantine begins or ends. stop removes
// the function.
func (g *Gateway) watchQuarantines() (stop func()) {
	if g.shared.trustAccounts == nil {
		return func() {}
	}
	return g.shared.trustAccounts.OnQuarantineChange(func(ctx context.Context, account string) {
		g.serverTrust.LogQuarantine(account)
		// ServersOf returns none before the first configuration; then the first enrolment checks the quarantine.
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

// quarantineTimeout is the time limit for one enrolment after a quarantine change, and for writing trust events to the
// store when the Shared is closed.
const quarantineTimeout = 30 * time.Second

// TrustRecords reads and resets the trust of servers in the store, without a gateway.
type TrustRecords struct{ accounts *vetting.TrustAccounts }

// ReadTrustRecords reads the trust accounts in a store. It returns nil if the settings turn trust accounts off. The
// error is an error of the store.
func ReadTrustRecords(ctx context.Context, db *store.DB, s config.Settings) (*TrustRecords, error) {
	b, err := openTrustAccounts(ctx, Config{}.withLogger(), s, db)
	if b == nil || err != nil {
		return nil, err
	}
	return &TrustRecords{b}, nil
}

// Lookup returns the trust of a server and the events that led to it, the newest first.
func (t *TrustRecords) Lookup(row config.Server) (drawbridge.Trust, []trust.Event) {
	return t.LookupAccount(vetting.TrustAccountName(row), trust.Level(row.Trust))
}

// LookupAccount is like Lookup, for the name of a trust account. level is the trust level in the server's
// configuration, if the server is configured.
func (t *TrustRecords) LookupAccount(name string, level trust.Level) (drawbridge.Trust, []trust.Event) {
	s := t.accounts.Status(name)
	return s.Trust(level), s.Reasons
}

// UnconfiguredAccounts returns the names of stored accounts that were last written for a server with the name id. It
// omits the accounts of the servers in rows. A server with such an account was removed, or is in another configuration.
func (t *TrustRecords) UnconfiguredAccounts(id drawbridge.ServerID, rows []config.Server) []string {
	names := t.accounts.NamesFor(string(id))
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(rows, func(row config.Server) bool { return vetting.TrustAccountName(row) == name })
	})
}

// ResetAccount is like Reset, for the name of a trust account, such as one that UnconfiguredAccounts returned.
func (t *TrustRecords) ResetAccount(ctx context.Context, name string, id drawbridge.ServerID) error {
	return t.accounts.Reset(ctx, name, string(id))
}

// Reset clears the trust account of a server. A running gateway uses the cleared account after its next Reload. The
// error is an error of the store.
func (t *TrustRecords) Reset(ctx context.Context, row config.Server) error {
	return t.accounts.Reset(ctx, vetting.TrustAccountName(row), string(row.ID))
}
