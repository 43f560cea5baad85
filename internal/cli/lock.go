package cli

import (
	"github.com/drawbridge-mcp/drawbridge/internal/cli/lock"
	"github.com/spf13/cobra"
)

func (a *app) lockCommand() *cobra.Command {
	return group(lock.Desk{Out: a.Out, Err: a.Err, Places: a.places, Deck: a.withDeck, Clerk: a.clerk, Quiet: errQuiet}.Command())
}
