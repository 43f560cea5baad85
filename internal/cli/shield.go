package cli

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/shield"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/spf13/cobra"
)

func (a *app) shieldCommand() *cobra.Command {
	return group(shield.Desk{
		In: a.In, Out: a.Out, Err: a.Err, Env: a.Env, Mounted: a.mounted, Trust: a.trust, Open: a.storeIfAny, Quiet: errQuiet, Asks: a.asks, Confirm: a.confirm,
		Roster: func() *roster.Roster {
			return roster.New(roster.Options{Places: a.places(), Store: a.store, Word: "drawbridge mcp", Environ: a.Environ, Tell: a.tellHub, Decided: a.tellDecision, Clerk: a.clerk})
		},
	}.Command())
}

// tellDecision has the running hub take a decision over: it lists these servers anew, since they may say something else by now
// than when it listed them. Where there is none the deck is looked at once, so that mcp list says how it is from now on.
func (a *app) tellDecision(ctx context.Context, servers ...drawbridge.ServerID) (string, error) {
	text, err := a.relistHub(servers...)
	if !errors.Is(err, hub.ErrNone) {
		return text, err
	}
	return nextServe, a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		_, err := g.Reload(ctx)
		return err
	})
}

// mounted gives what servers list, one's or all, as it came, and of which servers nothing could be had.
func (a *app) mounted(ctx context.Context, server drawbridge.ServerID) (all []shield.Item, absent []shield.Absent, err error) {
	err = a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		if server != "" {
			if _, err := g.Mount(ctx, server); err != nil {
				return err
			}
		} else {
			a.awaitNew(ctx, g)
		}
		all, absent = shield.Said(g, server)
		return nil
	})
	return all, absent, err
}

// trust gives how far each configured server is trusted, after forgiving the one that is named.
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
	return shield.ReadTrust(ctx, db, set, reset, a.roster().Reload, a.clerk)
}
