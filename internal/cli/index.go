package cli

import (
	"github.com/drawbridge-mcp/drawbridge/internal/cli/evaluate"
	"github.com/spf13/cobra"
)

func (a *app) indexCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Measure what tools are found by",
	}
	cmd.AddCommand(evaluate.Desk{Out: a.Out, Dir: a.Dir}.Command())
	return group(cmd)
}
