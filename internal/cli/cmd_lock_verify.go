package cli

import (
	"io"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/spf13/cobra"
)

func (d lockCommands) verifyCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [SERVER...]",
		Short: "Check the lists of servers against the lockfile",
		Long: `Check that servers list exactly the definitions of the lockfile: all your own servers, or those named. The
command starts them. It prints each difference, and the exit code is 1 then. It accepts no change and ignores the
definitions pinned in the store.`,
		Example: "  drawbridge lock verify --mcp servers.json --file drawbridge.lock",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := d.Admin().VerifyLockfile(cmd.Context(), d.WithGateway,
				admin.LockQuery{File: *file, Servers: args, Progress: d.showProgress})
			d.StatusLine.SetStatus("")
			if err != nil {
				return err
			}
			for _, id := range c.Unconfigured {
				safetext.Fprintf(d.Err, "%s is in the lockfile, and is none of your own servers here\n", id)
			}
			return d.printDifferences(c, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d lockCommands) printDifferences(c admin.LockComparison, asJSON bool) error {
	if asJSON {
		if err := PrintJSON(d.Out, c.Differences); err != nil {
			return err
		}
	}
	for _, f := range c.Differences {
		if !asJSON {
			printLockDifference(d.Out, f)
		}
	}
	switch {
	case len(c.Differences) > 0:
		safetext.Fprintf(d.Err, "%s from %s (drawbridge lock write takes over what is pinned)\n",
			formatCount(len(c.Differences), "difference"), c.File)
		return d.ErrAlreadyPrinted
	case !asJSON:
		safetext.Fprintf(d.Out, "✓ %d definitions are as %s says\n", c.Definitions, c.File)
	}
	return nil
}

func printLockDifference(w io.Writer, f admin.LockDifference) {
	switch {
	case f.Difference != nil:
		safetext.Fprintf(w, "✗ %s %s: %s\n", f.Server, safetext.Exact(shield.PinLabel(f.Part, f.Tool)), f.Difference)
		PrintDefinitionDiff(w, *f.Difference, IsTerminal(w))
	case f.Tool == "":
		safetext.Fprintf(w, "✗ %s: %s: %s\n", f.Server, f.Found, f.Why)
	default:
		safetext.Fprintf(w, "✗ %s %s: %s\n", f.Server, safetext.Exact(shield.PinLabel(f.Part, f.Tool)), f.Found)
	}
}
