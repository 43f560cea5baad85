package cli

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/shield"
	"github.com/spf13/cobra"
)

func (a *app) shieldCommand() *cobra.Command {
	return group(shield.Desk{
		In: a.In, Out: a.Out, Err: a.Err, Mounted: a.mounted, Quiet: errQuiet, Asks: a.asks, Confirm: a.confirm, Roster: a.roster,
	}.Command())
}

// mounted gives what servers list, one's or all, as it came.
func (a *app) mounted(ctx context.Context, server drawbridge.ServerID) (all []shield.Item, err error) {
	err = a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		if server != "" {
			if _, err := g.Mount(ctx, server); err != nil {
				return err
			}
		} else {
			a.awaitNew(ctx, g)
		}
		for _, m := range g.Deck().Members() {
			if l, ok := g.Deck().Listing(m.Server); ok && (server == "" || server == m.Server) {
				all = append(all, shield.Items(l)...)
			}
		}
		return nil
	})
	return all, err
}
