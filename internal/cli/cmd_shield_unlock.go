package cli

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (d shieldCommands) unlockCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unlock SERVER",
		Short: "Accept the current tool list of a server with lock_tool_list",
		Long: `Accept the current list of tools of a server. A server with "lock_tool_list" in its row keeps the first list
of tools that it was seen with. This command locks the current list instead.`,
		Example: "  drawbridge shield unlock github",
		Args:    exactArgs(1, "the name of one server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, live, err := d.Admin().UnlockToolList(cmd.Context(), drawbridge.ServerID(args[0]))
			if err != nil {
				return err
			}
			if !found {
				safetext.Fprintf(d.Err, "Server %q has no first list yet.\n", args[0])
				return nil
			}
			if live != "" {
				safetext.Fprintln(d.Err, live)
			}
			_, err = safetext.Fprintf(d.Out, "✓ the next list of %s is its first\n", args[0])
			return err
		},
	}
}
