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
	"github.com/drawbridge-mcp/drawbridge/gateway/standing"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/trust"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// newBook opens the book of how servers behave; nil where the settings want none.
func newBook(ctx context.Context, c Config, s config.Settings, db *store.DB) (*standing.Book, error) {
	if s.Shield.Enabled != nil && !*s.Shield.Enabled {
		return nil, nil
	}
	b := standing.New(db, standing.Options{Rules: trust.Rules{Threshold: s.Shield.Threshold, HalfLife: s.Shield.HalfLife}, Logger: c.Logger})
	return b, b.Read(ctx)
}

// accountOf names the account of a row: by what is started or dialled, and with what, as it is written. A server that goes by
// another name tomorrow, or under other rules of ours, has the past that it has.
func accountOf(row config.Server) string {
	parts := []any{row.Command, row.Args, row.URL, row.Env, row.Headers}
	if len(row.Row) > 0 {
		parts = parts[:0]
		for _, member := range []string{"command", "args", "url", "env", "headers"} {
			parts = append(parts, json.RawMessage(wire.Canonical(wire.Get(row.Row, member))))
		}
	}
	text, err := json.Marshal(append(parts, row.Cwd))
	if err != nil {
		text = []byte(row.Hash) // what nobody can write down is like nothing else
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// note has the book note what happened with a server.
func (g *Gateway) note(id drawbridge.ServerID, events ...trust.Event) {
	if row := g.row(id); g.ground.book != nil && row != nil {
		g.ground.book.Note(row.account(), string(id), events...)
	}
}

// together is how long calls that fail count as one failure: a server that dies once has all of its calls fail.
const together = 5 * time.Second

// ended takes note of how a call of a server ended.
func (g *Gateway) ended(id drawbridge.ServerID, call drawbridge.Call, result drawbridge.Result, err error) {
	g.ground.meter.Ended(id, call, result, err)
	if err == nil {
		g.note(id, trust.Event{Kind: trust.Succeeded})
		return
	}
	if f := drawbridge.AsFault(err); f.Kind == drawbridge.BridgeFault && (f.Code == drawbridge.Transient || f.Code == drawbridge.ServerError) {
		at := time.Now().Truncate(together)
		g.note(id, trust.Event{Kind: trust.Failed, Why: f.Step, Marks: []string{"failed " + at.UTC().Format(time.RFC3339)}})
	}
}

// A quarantine shows nothing of servers that are quarantined.
type quarantine struct {
	next deck.Vetter
	g    *Gateway
}

var (
	_ deck.Vetter      = quarantine{}
	_ deck.SkillVetter = quarantine{}
)

// Vet implements [deck.Vetter]. What the other stages found counts already.
func (q quarantine) Vet(ctx context.Context, server deck.Member, l drawbridge.Listing) (deck.Vetted, error) {
	v, err := q.next.Vet(ctx, server, l)
	q.g.bars.note(server.ID, v, err)
	if err == nil {
		q.g.note(server.ID, standing.Evidence(l, v)...)
	}
	t := q.g.trustOf(server.ID)
	if err != nil || t == nil || !t.Quarantined {
		return v, err
	}
	return deck.Vetted{Notes: v.Notes}, nil
}

// VetSkill implements [deck.SkillVetter].
func (q quarantine) VetSkill(ctx context.Context, server deck.Member, entry json.RawMessage) (json.RawMessage, error) {
	next, ok := q.next.(deck.SkillVetter)
	if !ok {
		return nil, errors.New("vet a skill: nobody looks at them")
	}
	if t := q.g.trustOf(server.ID); t != nil && t.Quarantined {
		return nil, nil
	}
	return next.VetSkill(ctx, server, entry)
}

// trustOf says how far a server is trusted; nil where nobody keeps an account of it.
func (g *Gateway) trustOf(id drawbridge.ServerID) *drawbridge.Trust {
	row := g.row(id)
	if g.ground.book == nil || row == nil {
		return nil
	}
	t := shownTrust(g.ground.book.Of(row.account()), row.Server)
	return &t
}

func shownTrust(s standing.Standing, row config.Server) drawbridge.Trust {
	return drawbridge.Trust{
		Score: s.Score, Level: string(trust.LevelOf(s.Score, trust.Level(row.Trust))), Quarantined: s.Quarantined, Until: s.Until,
	}
}

// watchTrust has the deck look again at servers whose quarantine begins or ends, until the function that it gives is called.
func (g *Gateway) watchTrust() (stop func()) {
	if g.ground.book == nil {
		return func() {}
	}
	return g.ground.book.Watch(func(account string) {
		rows := g.rows.Load()
		if rows == nil {
			return // nothing is configured yet, and what will be is looked at
		}
		for id, row := range *rows {
			if row.account() != account {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
			if err := g.deck.Revet(ctx, id); err != nil {
				g.log.Error("a quarantine that began or ended is not on the deck", "server", id, "err", err)
			}
			g.keepVetted(ctx, id)
			cancel()
		}
	})
}

// settleTimeout bounds how long the deck may take for a quarantine.
const settleTimeout = 30 * time.Second

// A TrustBook says how far configured servers are trusted, from what the store has, without a gateway.
type TrustBook struct{ book *standing.Book }

// ReadTrust reads what a store has of how servers behaved; nil where the settings want no account of it. The error is the store's.
func ReadTrust(ctx context.Context, db *store.DB, s config.Settings) (*TrustBook, error) {
	b, err := newBook(ctx, Config{}.withLogger(), s, db)
	if b == nil || err != nil {
		return nil, err
	}
	return &TrustBook{b}, nil
}

// Of says how far the server of a row is trusted, and for which reasons, the newest first.
func (t *TrustBook) Of(row config.Server) (drawbridge.Trust, []trust.Event) {
	s := t.book.Of(accountOf(row))
	return shownTrust(s, row), s.Reasons
}

// Reset notes that a person forgave the server of a row everything. A gateway that runs knows when it is told to reload. The error
// is the store's.
func (t *TrustBook) Reset(ctx context.Context, row config.Server) error {
	return t.book.Reset(ctx, accountOf(row), string(row.ID))
}
