package cli

import (
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// withSupportTable adds the flag --support to "doctor". With this flag, the command only prints which systems are
// tested.
func (a *app) withSupportTable(cmd *cobra.Command) *cobra.Command {
	var support bool
	cmd.Flags().BoolVar(&support, "support", false, "print which systems are tested, and what is missing on others")
	find := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !support {
			return find(cmd, args)
		}
		if asJSON, err := cmd.Flags().GetBool("json"); err == nil && asJSON {
			return PrintJSON(a.Out, admin.SupportedSystems())
		}
		return a.printSupport(admin.SupportedSystems())
	}
	return cmd
}

func (a *app) printSupport(all []admin.SystemSupport) error {
	tw := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	safetext.Fprintf(tw, "SYSTEM\tSTATE\n")
	for _, s := range all {
		state := "compiled only"
		if s.Tested {
			state = "tested"
		}
		if s.Current {
			state += " (this one)"
		}
		safetext.Fprintf(tw, "%s\t%s\n", s.System, state)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, s := range all {
		if len(s.Missing) > 0 {
			safetext.Fprintf(a.Out, "\nmissing on %s:\n", s.System)
		}
		for _, what := range s.Missing {
			safetext.Fprintf(a.Out, "  %s\n", what)
		}
	}
	return nil
}
