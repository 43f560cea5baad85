package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/term"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (d shieldCommands) resultsCommand() *cobra.Command {
	var asJSON, yes bool
	cmd := &cobra.Command{
		Use:   "results [ID]",
		Short: "Show the results that were held back, or read one",
		Long: `Show the results that were held back because they matched a rule of the shield, or read one. This
applies to servers with "hold_flagged": true in their row, or to all with hold_flagged = true in [mcp.shield].
Results are kept for 30 days.

A result is foreign text, and may contain instructions for a model: without a terminal, --yes is needed to read it.`,
		Example: "  drawbridge shield results\n  drawbridge shield results k3f9qzab",
		Args:    maxOneResultID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return d.listResults(cmd.Context(), asJSON)
			}
			if !yes && !term.IsTerminal(d.Out) {
				return admin.UserError(
					"nothing was shown: output is not a terminal (--yes prints it anyway)")
			}
			return d.readResult(cmd.Context(), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, a result whole")
	cmd.Flags().BoolVar(&yes, "yes", false, "print a result even if output is not a terminal")
	return cmd
}

func maxOneResultID(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return admin.UserError(fmt.Sprintf("%s takes one ID at most", cmd.CommandPath()))
	}
	return nil
}

func (d shieldCommands) listResults(ctx context.Context, asJSON bool) error {
	all, err := d.Admin().HeldResults(ctx)
	if err != nil {
		return err
	}
	return listPrinter[admin.HeldResult]{
		Header: "ID\tAT\tCALLER\tTOOL\tRULES", EmptyText: "No result is held back.",
		Columns: func(r admin.HeldResult) string {
			return safetext.Sprintf("%s\t%s\t%s\t%s\t%s", r.ID, formatLocalTime(r.At), safetext.Exact(r.Caller),
				safetext.Exact(r.Card), strings.Join(r.Rules, ", "))
		},
	}.print(d.Out, d.Err, all, asJSON)
}

// readResult prints the JSON of one result, with control characters escaped.
func (d shieldCommands) readResult(ctx context.Context, id string, asJSON bool) error {
	r, err := d.Admin().HeldResult(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return PrintJSON(d.Out, r)
	}
	safetext.Fprintf(d.Out, "%s  %s, %s of %s, for %s\n  met %s\n", r.ID, formatLocalTime(r.At), safetext.Exact(r.Card),
		r.Server, safetext.Exact(r.Caller), strings.Join(r.Rules, ", "))
	text, err := json.MarshalIndent(r.Result, "", "  ")
	if err != nil {
		text = r.Result
	}
	for line := range strings.Lines(safetext.Text(string(text))) { // it is JSON, which doubles backslashes itself
		if _, err := fmt.Fprintln(d.Out, "  "+strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}
