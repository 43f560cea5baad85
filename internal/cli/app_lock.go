package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) lockCommand() *cobra.Command {
	return asCommandGroup(lockCommands{Out: a.Out, Err: a.Err, Admin: a.adminService, WithGateway: a.withDeck,
		StatusLine: a.statusLine, ErrAlreadyPrinted: errAlreadyPrinted}.command())
}
