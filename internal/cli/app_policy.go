package cli

import (
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/spf13/cobra"
)

func (a *app) policyCommand() *cobra.Command {
	return asCommandGroup(policyCommands{
		Out: a.Out, In: a.In, ConfigOptions: config.Options{Dir: a.Dir, LookupEnv: a.Env}, WithGateway: a.withDeck,
		AwaitNewServers: a.awaitNewServers, Caller: commandLineCaller,
	}.command())
}
