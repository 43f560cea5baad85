package cli

import (
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/discovery"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/evaluate"
	"github.com/spf13/cobra"
)

// discovery is where cards are found for a person.
func (a *app) discovery() discovery.Desk {
	return discovery.Desk{Out: a.Out, Err: a.Err, With: a.withDeck, Await: a.awaitNew, Person: person, Running: a.models, Screen: a.screen}
}

// models says how those of the hub are, if one runs.
func (a *app) models() (gateway.ModelStatus, bool) {
	state, err := hub.ReadState(a.hub())
	return state.Models, err == nil
}

func (a *app) indexCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Look at what tools are found by, and measure it",
	}
	cmd.AddCommand(a.discovery().Stats(), a.discovery().Rebuild(), evaluate.Desk{Out: a.Out, Err: a.Err, Dir: a.Dir}.Command())
	return group(cmd)
}
