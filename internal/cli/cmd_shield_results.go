package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (d shieldCommands) resultsCommand() *cobra.Command {
	var asJSON, yes bool
	cmd := &cobra.Command{
		Use:   "results [ID]",
		Short: "Show results that were flagged or held back, or read one",
		Long: `Show the results of servers in which a rule of the shield matched, or read one. They are kept for 30
days.

A result of a server with "hold_flagged", or of any server with hold_flagged = true in [mcp.shield], is held
back: the caller did not get it, and it is kept complete. Results of other servers that are not trusted are
examined after they were passed on, unless scan_results = "off" in [mcp.shield]; only the matching words are kept.

A result is foreign text, and may contain instructions for a model: without a terminal, --yes is needed to read it.`,
		Example: "  drawbridge shield results\n  drawbridge shield results k3f9qzab",
		Args:    maxOneResultID,
		RunE: func(cmd *cobra.Command, args []string) error {
			showText := yes || IsTerminal(d.Out)
			if len(args) == 0 {
				return d.listResults(cmd.Context(), asJSON, showText)
			}
			if !showText {
				return admin.UserError(
					"nothing was shown: output is not a terminal (--yes prints it anyway)")
			}
			return d.readResult(cmd.Context(), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, a result whole")
	cmd.Flags().BoolVar(&yes, "yes", false, "print the words of a result even if output is not a terminal")
	return cmd
}

func maxOneResultID(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return admin.UserError(fmt.Sprintf("%s takes one ID at most", cmd.CommandPath()))
	}
	return nil
}

// A heldEntry is an element of the JSON list of "shield results": a result that was held back and that the caller did
// not receive.
type heldEntry struct {
	State string `json:"state"`
	admin.HeldResult
}

// A flaggedEntry is an element of the JSON list of "shield results": a result that the caller received, and in which a
// rule matched.
type flaggedEntry struct {
	State string `json:"state"`
	admin.FlaggedResult
}

// listResults prints the results that were held back, and the results that were passed on and flagged. If showText is
// set, it also prints the matching words of flagged results.
func (d shieldCommands) listResults(ctx context.Context, asJSON, showText bool) error {
	held, err := d.Admin().HeldResults(ctx)
	if err != nil {
		return err
	}
	flagged, scans, err := d.Admin().FlaggedResults(ctx)
	if err != nil {
		return err
	}
	if !showText {
		for i := range flagged {
			flagged[i].Excerpt = ""
		}
	}
	if asJSON {
		all := []any{}
		for _, r := range held {
			all = append(all, heldEntry{"held", r})
		}
		for _, r := range flagged {
			all = append(all, flaggedEntry{"flagged", r})
		}
		return PrintJSON(d.Out, all)
	}
	err = listPrinter[admin.HeldResult]{
		Header: "ID\tAT\tCALLER\tTOOL\tRULES", EmptyText: "No result is held back.",
		Columns: func(r admin.HeldResult) string {
			return safetext.Sprintf("%s\t%s\t%s\t%s\t%s", r.ID, formatLocalTime(r.At), safetext.Exact(r.Caller),
				safetext.Exact(r.Card), strings.Join(r.Rules, ", "))
		},
	}.print(d.Out, d.Err, held, false)
	if err != nil {
		return err
	}
	return d.printFlagged(flagged, scans, showText, len(held) > 0)
}

// printFlagged prints the results that were passed on and flagged, and the servers with results that were not examined.
// If afterTable is set, another table was printed before, and printFlagged prints an empty line between the tables.
func (d shieldCommands) printFlagged(flagged []admin.FlaggedResult, scans []admin.ScanSummary,
	showText, afterTable bool) error {
	if afterTable && len(flagged) > 0 {
		safetext.Fprintln(d.Out)
	}
	header := "ID\tPASSED ON\tTIMES\tCALLER\tTOOL\tRULES"
	if showText {
		header += "\tWORDS"
	}
	err := listPrinter[admin.FlaggedResult]{
		Header: header, EmptyText: "No result that was passed on is flagged.",
		Columns: func(r admin.FlaggedResult) string {
			line := safetext.Sprintf("%s\t%s\t%d\t%s\t%s\t%s", r.ID, formatLocalTime(r.At), r.Times,
				safetext.Exact(r.Caller), safetext.Exact(r.Card), strings.Join(r.Rules, ", "))
			if showText {
				line += safetext.Sprintf("\t%s", r.Excerpt)
			}
			return line
		},
	}.print(d.Out, d.Err, flagged, false)
	for _, s := range scans {
		if s.Skipped > 0 {
			safetext.Fprintf(d.Err, "%s: %s of %d not examined, since %s\n", s.Server,
				formatCount(s.Skipped, "result"), s.Scanned+s.Skipped, formatLocalTime(s.Since))
		}
	}
	if !showText && len(flagged) > 0 {
		safetext.Fprintln(d.Err, "The matching words are shown at a terminal, or with --yes.")
	}
	return err
}

// readFlagged prints the flagged result with an ID, and reports whether it exists.
func (d shieldCommands) readFlagged(ctx context.Context, id string, asJSON bool) (found bool, err error) {
	flagged, _, err := d.Admin().FlaggedResults(ctx)
	if err != nil {
		return false, err
	}
	for _, r := range flagged {
		switch {
		case r.ID != id:
			continue
		case asJSON:
			return true, PrintJSON(d.Out, flaggedEntry{"flagged", r})
		}
		safetext.Fprintf(d.Out, "%s  %s, %s of %s, for %s\n  passed on %s, met %s\n", r.ID, formatLocalTime(r.At),
			safetext.Exact(r.Card), r.Server, safetext.Exact(r.Caller), formatCount(r.Times, "time"),
			strings.Join(r.Rules, ", "))
		if r.Excerpt != "" {
			safetext.Fprintf(d.Out, "  %s\n", r.Excerpt)
		}
		if r.CallID != "" {
			safetext.Fprintf(d.Out, "  drawbridge audit show %s\n", r.CallID)
		}
		return true, nil
	}
	return false, nil
}

// readResult prints the flagged or held result with an ID. The JSON of a held result is printed with control characters
// escaped.
func (d shieldCommands) readResult(ctx context.Context, id string, asJSON bool) error {
	if found, err := d.readFlagged(ctx, id, asJSON); found || err != nil {
		return err
	}
	r, err := d.Admin().HeldResult(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return PrintJSON(d.Out, heldEntry{"held", r})
	}
	safetext.Fprintf(d.Out, "%s  %s, %s of %s, for %s\n  met %s\n", r.ID, formatLocalTime(r.At), safetext.Exact(r.Card),
		r.Server, safetext.Exact(r.Caller), strings.Join(r.Rules, ", "))
	text, err := json.MarshalIndent(r.Result, "", "  ")
	if err != nil {
		text = r.Result
	}
	for line := range strings.Lines(safetext.Text(string(text))) { // JSON doubles backslashes already
		if _, err := fmt.Fprintln(d.Out, "  "+strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}
