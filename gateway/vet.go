package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/pins"
	"github.com/drawbridge-mcp/drawbridge/gateway/vetting"
)

// vetter is what looks at listings: first at what their rows say, then at what was pinned of them, and then at what servers say.
func (g *Gateway) vetter() deck.Vetter {
	g.pins = pins.NewStage(g.ground.pins)
	return vetting.Chain{vetting.Attest{Firsts: g.ground.db, Log: g.log}, g.pins, g.ground.sanitiser}
}

// listed takes a listing that the fleet brought.
func (g *Gateway) listed(ctx context.Context, l drawbridge.Listing) {
	if err := g.deck.Enrol(ctx, l); err != nil {
		g.log.Warn("a server was listed and could not be enrolled", "server", l.Server, "err", err)
	}
	g.keepVetted(ctx)
}

// lookAgain looks anew at remembered listings that are shown as older rules left them, and keeps what comes of it.
func (g *Gateway) lookAgain(ctx context.Context) {
	g.mu.Lock()
	members := g.members()
	g.mu.Unlock()
	for _, m := range members {
		if !g.ground.sanitiser.Stale(m) || ctx.Err() != nil {
			continue
		}
		if err := g.deck.Revet(ctx, m.ID); err != nil && !errors.Is(err, context.Canceled) {
			g.log.Warn("what a server lists was not looked at by the rules of today", "server", m.ID, "err", err)
		}
	}
	g.keepVetted(ctx)
}

// keepTimeout bounds what is kept of a listing when everything ends.
const keepTimeout = 5 * time.Second

// keepVetted keeps what was made of listings, so that the next start need not look at them.
func (g *Gateway) keepVetted(ctx context.Context) {
	records := g.ground.sanitiser.Unsaved()
	if len(records) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	if err := g.ground.db.SaveVetted(ctx, records); err != nil {
		g.log.Warn("what may be shown of listings was not kept", "err", err)
	}
}
