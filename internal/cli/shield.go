package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/spf13/cobra"
)

func (a *app) shieldCommand() *cobra.Command {
	return group(shield.Desk{
		In: a.In, Out: a.Out, Err: a.Err, Mounted: a.mounted, Quiet: errQuiet, Asks: a.asks, Confirm: a.confirm, Roster: a.roster,
	}.Command())
}

// mounted gives what the deck lists that is one server's, or anybody's where none is named.
func (a *app) mounted(ctx context.Context, server drawbridge.ServerID) (all []shield.Item, err error) {
	err = a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		if server != "" {
			if _, err := g.Mount(ctx, server); err != nil {
				return err
			}
		} else {
			a.awaitNew(ctx, g)
		}
		for _, spec := range g.Deck().Cards(person(g)) {
			if spec.Server != "" && (server == "" || spec.Server == server) {
				all = append(all, shield.Item{ID: string(spec.Name), Kind: "tool", Definition: spec.Definition})
			}
		}
		rest, err := others(ctx, g, server)
		all = append(all, rest...)
		return err
	})
	return all, err
}

// others gives the prompts of a server, and, where none is named, the resources, templates and instructions of all.
func others(ctx context.Context, g *gateway.Gateway, server drawbridge.ServerID) (all []shield.Item, err error) {
	for _, l := range []struct{ method, kind, id string }{
		{wire.MethodPromptsList, "prompt", "name"}, {wire.MethodResourcesList, "resource", "uri"}, {wire.MethodTemplatesList, "template", "uriTemplate"},
	} {
		if server != "" && l.kind != "prompt" {
			continue
		}
		list, err := g.Deck().List(ctx, person(g), l.method)
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", l.kind, err)
		}
		for _, item := range list.Items {
			id := wire.GetText(item, l.id)
			if server == "" || strings.HasPrefix(id, string(server)+drawbridge.Qualifier) {
				all = append(all, shield.Item{ID: id, Kind: l.kind, Definition: item})
			}
		}
	}
	text := g.Deck().Instructions(person(g))
	if server != "" || text == "" {
		return all, nil
	}
	raw, err := json.Marshal(text)
	return append(all, shield.Item{ID: "instructions", Kind: "instructions", Definition: raw}), err
}
