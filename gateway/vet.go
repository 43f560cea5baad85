package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/audit"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/pins"
	"github.com/drawbridge-mcp/drawbridge/gateway/vetting"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// vetter is what looks at listings: first at what their rows say, then at what was pinned of them, and then at what servers say.
func (g *Gateway) vetter() deck.Vetter {
	g.pins = pins.NewStage(g.ground.pins)
	return vetting.Chain{vetting.Attest{Firsts: g.ground.db, Log: g.log}, g.pins, g.ground.vetted.sanitiser}
}

// A questioner gives what a server asks in the course of a call as it may be shown.
type questioner = func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage

// questions looks at what servers ask, and has it in the audit, which may be nil.
func questions(s *vetting.Sanitiser, a *store.Audit, log *slog.Logger) questioner {
	var record func(audit.Record) error
	if a != nil {
		record = a.Record
	}
	return vetting.NewQuestions(s, record, log, time.Now).Look
}

// vetted is what gateways of one ground know of the listings that they looked at.
type vetted struct {
	sanitiser *vetting.Sanitiser

	mu sync.Mutex
	// kept is what the store has, by row.
	kept map[string][]byte
}

// A Vetted is what the store keeps of what came of a listing.
type Vetted struct {
	// Cards is how many of its tools were on the deck, Notes what people are told of the rest, see Status.
	Cards int      `json:"cards"`
	Notes []string `json:"notes,omitempty"`
	// Book is the sanitiser's.
	Book json.RawMessage `json:"book,omitempty"`
}

// remember takes what the store has of a row.
func (v *vetted) remember(row string, text []byte) {
	v.mu.Lock()
	v.keep(row, text)
	v.mu.Unlock()
	v.sanitiser.Remember(row, wire.Get(text, "book")) // what is damaged is as good as not kept
}

// mostKept bounds of how many rows it is known what the store has: what is forgotten is written once more.
const mostKept = 1024

// keep notes what the store has of a row. The lock is held.
func (v *vetted) keep(row string, text []byte) {
	if _, known := v.kept[row]; !known && len(v.kept) >= mostKept {
		clear(v.kept)
	}
	v.kept[row] = text
}

// fresh gives what is to be kept of the members, where the store has something else.
func (v *vetted) fresh(members []deck.MemberStatus) map[string][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string][]byte{}
	for _, m := range members {
		book := v.sanitiser.Record(m.Row)
		text, err := json.Marshal(Vetted{Cards: len(m.Cards), Notes: notes(m), Book: book})
		if err == nil && book != nil && !bytes.Equal(text, v.kept[m.Row]) {
			v.keep(m.Row, text)
			out[m.Row] = text
		}
	}
	return out
}

// listed takes a listing that the fleet brought.
func (g *Gateway) listed(ctx context.Context, l drawbridge.Listing) {
	err := g.deck.Enrol(ctx, l)
	switch f, _ := errors.AsType[*drawbridge.Fault](err); {
	case err == nil:
	case ctx.Err() != nil, f != nil && f.Code == drawbridge.NotFound: // the server is to end, or its row was changed meanwhile
	default:
		g.log.Warn("a server was listed and could not be enrolled", "server", l.Server, "err", err)
	}
	g.keepVetted(ctx, l.Server)
}

// lookAgain looks anew at remembered listings that are shown as older rules left them, and keeps what came of all.
func (g *Gateway) lookAgain(ctx context.Context) {
	g.mu.Lock()
	members := g.members()
	g.mu.Unlock()
	for _, m := range members {
		if !g.ground.vetted.sanitiser.Stale(m) || ctx.Err() != nil {
			continue
		}
		if err := g.deck.Revet(ctx, m.ID); err != nil && !errors.Is(err, context.Canceled) {
			g.log.Warn("what a server lists was not looked at by the rules of today", "server", m.ID, "err", err)
		}
	}
	g.keepVetted(ctx)
}

// lookAtLocked looks again at servers whose list is locked: a person may have unlocked it. It needs mu.
func (g *Gateway) lookAtLocked(ctx context.Context) error {
	var locked []drawbridge.ServerID
	for _, m := range g.members() {
		if m.Locked {
			locked = append(locked, m.ID)
		}
	}
	if len(locked) == 0 {
		return nil
	}
	return g.deck.Revet(ctx, locked...)
}

// keepTimeout bounds what is kept of a listing when everything ends.
const keepTimeout = 5 * time.Second

// keepVetted keeps what came of listings, of all where none is named, so that the next start need not look at them.
func (g *Gateway) keepVetted(ctx context.Context, servers ...drawbridge.ServerID) {
	members := slices.DeleteFunc(g.deck.Members(), func(m deck.MemberStatus) bool {
		return len(servers) > 0 && !slices.Contains(servers, m.Server)
	})
	fresh := g.ground.vetted.fresh(members)
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	if err := g.ground.db.SaveVetted(ctx, fresh); err != nil {
		g.log.Warn("what may be shown of listings was not kept", "err", err)
	}
}
