package cli

import (
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyCommand() *cobra.Command {
	return group(policy.Desk{
		Out: a.Out, In: a.In, Places: config.Options{Dir: a.Dir, LookupEnv: a.Env}, With: a.withDeck, Await: a.awaitNew, Person: person,
	}.Command())
}
