package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) policyCommand() *cobra.Command {
	return asCommandGroup(policyCommands{Out: a.Out, Err: a.Err, In: a.In, Admin: a.adminService,
		WithGateway: a.withDeck, AwaitNewServers: a.awaitNewServers, Caller: commandLineCaller}.command())
}
