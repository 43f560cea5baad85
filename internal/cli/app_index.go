package cli

import (
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/spf13/cobra"
)

// newToolIndexCommands returns the commands that search for tools.
func (a *app) newToolIndexCommands() toolIndexCommands {
	return toolIndexCommands{Out: a.Out, Err: a.Err, WithGateway: a.withDeck, AwaitNewServers: a.awaitNewServers,
		Caller: commandLineCaller, HubModelStatus: a.hubModelStatus, StatusLine: a.statusLine}
}

// hubModelStatus returns the status of the hub's models. It returns false if no hub answers.
func (a *app) hubModelStatus() (gateway.ModelStatus, bool) {
	state, err := hub.ReadState(a.hubOptions())
	return state.Models, err == nil
}

func (a *app) indexCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Inspect and measure the tool search",
	}
	cmd.AddCommand(a.newToolIndexCommands().statsCommand(), a.newToolIndexCommands().rebuildCommand(),
		evalCommand{Out: a.Out, Err: a.Err, Dir: a.Dir}.command())
	return asCommandGroup(cmd)
}
