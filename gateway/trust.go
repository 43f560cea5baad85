package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
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

// trustAccountID returns the name of the account of a server: a hash of its command or URL, with arguments, environment
// and headers as written. A server that is renamed, or gets other settings of ours, keeps its account.
func trustAccountID(row config.Server) string {
	parts := []any{row.Command, row.Args, row.URL, row.Env, row.Headers}
	if len(row.Raw) > 0 {
		parts = parts[:0]
		for _, member := range []string{"command", "args", "url", "env", "headers"} {
			parts = append(parts, json.RawMessage(rawjson.Canonical(rawjson.Get(row.Raw, member))))
		}
	}
	text, err := json.Marshal(append(parts, row.Cwd))
	if err != nil {
		text = []byte(row.Hash) // not JSON: an account of its own
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// addTrustEvents records events in the account of a server.
func (g *Gateway) addTrustEvents(id drawbridge.ServerID, events ...trust.Event) {
	if row := g.rowByID(id); g.shared.trustAccounts != nil && row != nil {
		g.shared.trustAccounts.AddEvents(row.trustAccount(), string(id), events...)
	}
}

// onCallEnd passes the end of a call to those that count calls: the call limiter and the trust accounts.
func (g *Gateway) onCallEnd(id drawbridge.ServerID, call drawbridge.Call, result drawbridge.Result, err error) {
	g.shared.callLimiter.CallEnded(id, call, result, err)
	g.addTrustEvents(id, vetting.CallEvidence(err)...)
}

// A trustGate lets the vetting pipeline reach the trust accounts by server.
type trustGate struct{ g *Gateway }

// AddEvents records evidence about a server.
func (t trustGate) AddEvents(id drawbridge.ServerID, events ...trust.Event) {
	t.g.addTrustEvents(id, events...)
}

// Quarantined reports whether a server is quarantined now.
func (t trustGate) Quarantined(id drawbridge.ServerID) bool {
	row := t.g.rowByID(id)
	return t.g.shared.trustAccounts != nil && row != nil && t.g.shared.trustAccounts.Quarantined(row.trustAccount())
}

// serverTrust returns the trust of a server, or nil if it has no account.
func (g *Gateway) serverTrust(id drawbridge.ServerID) *drawbridge.Trust {
	row := g.rowByID(id)
	if g.shared.trustAccounts == nil || row == nil {
		return nil
	}
	t := trustOf(g.shared.trustAccounts.Status(row.trustAccount()), row.Server)
	return &t
}

func trustOf(s vetting.TrustStatus, row config.Server) drawbridge.Trust {
	return drawbridge.Trust{
		Score: s.Score, Level: string(trust.LevelForScore(s.Score, trust.Level(row.Trust))),
		Quarantined: s.Quarantined, Until: s.Until,
	}
}

// watchQuarantines enrols servers again when their quarantine begins or ends, until stop is called.
func (g *Gateway) watchQuarantines() (stop func()) {
	if g.shared.trustAccounts == nil {
		return func() {}
	}
	return g.shared.trustAccounts.OnQuarantineChange(func(account string) {
		rows := g.rows.Load()
		if rows == nil {
			return // not configured yet: the first enrolment will check
		}
		for id, row := range *rows {
			if row.trustAccount() != account {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), quarantineTimeout)
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
	s := t.accounts.Status(trustAccountID(row))
	return trustOf(s, row), s.Reasons
}

// Reset clears the account of a server. A running gateway reads that when it reloads. The error is the store's.
func (t *TrustRecords) Reset(ctx context.Context, row config.Server) error {
	return t.accounts.Reset(ctx, trustAccountID(row), string(row.ID))
}
