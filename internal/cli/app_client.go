package cli

import (
	"errors"

	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/spf13/cobra"
)

// clientCommand returns the command "client", which manages the tokens of clients.
func (a *app) clientCommand() *cobra.Command {
	cmd := clientTokenCommands{
		Out: a.Out, Err: a.Err, Admin: a.adminService,
		ReloadHub: func() error {
			_, err := a.reloadHub()
			if errors.Is(err, hub.ErrNoHub) {
				return nil
			}
			return err
		},
	}.command()
	cmd.Args = rejectUnknownCommand
	return cmd
}

// askCommand returns the command "ask", which answers calls that wait for approval.
func (a *app) askCommand() *cobra.Command {
	cmd := askCommands{In: a.In, Out: a.Out, Err: a.Err, Admin: a.adminService}.command()
	cmd.Args = rejectUnknownCommand
	return cmd
}
