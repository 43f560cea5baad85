package cli

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/spf13/cobra"
)

func (a *app) shieldCommand() *cobra.Command {
	return asCommandGroup(shieldCommands{
		In: a.In, Out: a.Out, Err: a.Err, Env: a.Env, ListItems: a.listMountedItems,
		ErrAlreadyPrinted: errAlreadyPrinted, IsInteractive: a.isInteractive,
		Confirm: a.confirm,
		Admin: func() *admin.Service {
			return admin.New(admin.Options{ConfigOptions: a.configOptions(), Store: a.storeLocation,
				CommandPrefix: "drawbridge mcp", Environ: a.Environ, ReloadServers: a.reloadHubIfRunning,
				RelistServers: a.relistAfterDecision, AdminRecorder: a.recordAction})
		},
	}.command())
}

// relistAfterDecision makes the running hub apply a person's decision, such as accepting a changed tool, and returns a
// description of the result. The hub first requests the lists of the servers again, because a list may have changed
// since. If no hub runs, this process opens a gateway once, so that "mcp list" shows the new state, unless the session
// that runs the command has a gateway.
func (a *app) relistAfterDecision(ctx context.Context, servers ...drawbridge.ServerID) (string, error) {
	text, err := a.relistHub(servers...)
	if !errors.Is(err, hub.ErrNoHub) || a.sessionReloads() {
		if errors.Is(err, hub.ErrNoHub) {
			err = nil
		}
		return text, err
	}
	return a.noHubText(), a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		_, err := g.Reload(ctx)
		return err
	})
}

// listMountedItems returns the items that a server lists, as the server sent them: tools, prompts, resources, templates
// and its instructions. absent are the servers that could not be listed. An empty server selects all servers.
func (a *app) listMountedItems(ctx context.Context, server drawbridge.ServerID) (all []serverItem,
	absent []unlistedServer, err error) {
	err = a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		if server != "" {
			if _, err := g.Mount(ctx, server); err != nil {
				return err
			}
		} else {
			a.awaitNewServers(ctx, g)
		}
		all, absent = mountedItems(g, server)
		return nil
	})
	return all, absent, err
}
