package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// openTrustAccounts opens the book of how servers behave; nil where the settings want none.
func openTrustAccounts(ctx context.Context, c Config, s config.Settings, db *store.DB) (*vetting.TrustAccounts, error) {
	if s.Shield.Enabled != nil && !*s.Shield.Enabled {
		return nil, nil
	}
	b := vetting.NewTrustAccounts(db, vetting.TrustOptions{Rules: trust.ScoreRules{Threshold: s.Shield.Threshold,
		HalfLife: s.Shield.HalfLife}, Logger: c.Logger})
	return b, b.Load(ctx)
}

// trustAccountID names the account of a row: by what is started or dialled, and with what, as it is written. A server
// that goes by another name tomorrow, or under other rules of ours, has the past that it has.
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
		text = []byte(row.Hash) // what nobody can write down is like nothing else
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// addTrustEvents has the book note what happened with a server.
func (g *Gateway) addTrustEvents(id drawbridge.ServerID, events ...trust.Event) {
	if row := g.rowByID(id); g.shared.trustAccounts != nil && row != nil {
		g.shared.trustAccounts.AddEvents(row.trustAccount(), string(id), events...)
	}
}

// failureWindow is how long calls that fail count as one failure: a server that dies once has all of its calls fail.
const failureWindow = 5 * time.Second

// onCallEnd takes note of how a call of a server ended.
func (g *Gateway) onCallEnd(id drawbridge.ServerID, call drawbridge.Call, result drawbridge.Result, err error) {
	g.shared.callLimiter.CallEnded(id, call, result, err)
	if err == nil {
		g.addTrustEvents(id, trust.Event{Kind: trust.CallSucceeded})
		return
	}
	if f := drawbridge.AsFault(err); f.Kind == drawbridge.BridgeFault && (f.Code == drawbridge.Transient ||
		f.Code == drawbridge.ServerError) {
		at := time.Now().Truncate(failureWindow)
		g.addTrustEvents(id, trust.Event{Kind: trust.CallFailed, Why: f.Step, Marks: []string{"failed " +
			at.UTC().Format(time.RFC3339)}})
	}
}

// A quarantineVetter shows nothing of servers that are quarantined.
type quarantineVetter struct {
	next deck.Vetter
	g    *Gateway
}

var (
	_ deck.Vetter      = quarantineVetter{}
	_ deck.SkillVetter = quarantineVetter{}
)

// Vet implements [deck.Vetter]. What the other stages found counts already.
func (q quarantineVetter) Vet(ctx context.Context, server deck.Server, l drawbridge.Listing) (deck.VettedListing,
	error) {
	v, err := q.next.Vet(ctx, server, l)
	q.g.blocked.update(server.ID, v, err)
	if err == nil {
		q.g.addTrustEvents(server.ID, vetting.TrustEvidence(l, v)...)
	}
	t := q.g.serverTrust(server.ID)
	if err != nil || t == nil || !t.Quarantined {
		return v, err
	}
	return deck.VettedListing{Notes: v.Notes}, nil
}

// VetSkill implements [deck.SkillVetter].
func (q quarantineVetter) VetSkill(ctx context.Context, server deck.Server, entry json.RawMessage) (
	json.RawMessage, error) {
	next, ok := q.next.(deck.SkillVetter)
	if !ok {
		return nil, errors.New("vet a skill: nobody looks at them")
	}
	if t := q.g.serverTrust(server.ID); t != nil && t.Quarantined {
		return nil, nil
	}
	return next.VetSkill(ctx, server, entry)
}

// serverTrust says how far a server is trusted; nil where nobody keeps an account of it.
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

// watchQuarantines has the deck look again at servers whose quarantine begins or ends, until the function that it
// gives is called.
func (g *Gateway) watchQuarantines() (stop func()) {
	if g.shared.trustAccounts == nil {
		return func() {}
	}
	return g.shared.trustAccounts.OnQuarantineChange(func(account string) {
		rows := g.rows.Load()
		if rows == nil {
			return // nothing is configured yet, and what will be is looked at
		}
		for id, row := range *rows {
			if row.trustAccount() != account {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), quarantineTimeout)
			if err := g.deck.Revet(ctx, id); err != nil {
				g.log.Error("a quarantine that began or ended is not on the deck", "server", id, "err", err)
			}
			g.saveVetted(ctx, id)
			cancel()
		}
	})
}

// quarantineTimeout bounds how long the deck may take for a quarantine.
const quarantineTimeout = 30 * time.Second

// A TrustRecords says how far configured servers are trusted, from what the store has, without a gateway.
type TrustRecords struct{ accounts *vetting.TrustAccounts }

// ReadTrustRecords reads what a store has of how servers behaved; nil where the settings want no account of it. The
// error is the store's.
func ReadTrustRecords(ctx context.Context, db *store.DB, s config.Settings) (*TrustRecords, error) {
	b, err := openTrustAccounts(ctx, Config{}.withLogger(), s, db)
	if b == nil || err != nil {
		return nil, err
	}
	return &TrustRecords{b}, nil
}

// Lookup says how far the server of a row is trusted, and for which reasons, the newest first.
func (t *TrustRecords) Lookup(row config.Server) (drawbridge.Trust, []trust.Event) {
	s := t.accounts.Status(trustAccountID(row))
	return trustOf(s, row), s.Reasons
}

// Reset notes that a person forgave the server of a row everything. A gateway that runs knows when it is told to
// reload. The error is the store's.
func (t *TrustRecords) Reset(ctx context.Context, row config.Server) error {
	return t.accounts.Reset(ctx, trustAccountID(row), string(row.ID))
}
