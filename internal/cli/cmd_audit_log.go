package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (d AuditCommands) logCommand() *cobra.Command {
	var q admin.AuditQuery
	var since string
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Print the calls, oldest first",
		Long: `Print the calls of the last 24 hours, or since a time that you name, oldest first. A call
without an outcome is still running, or its process died.`,
		Example: `  drawbridge audit log --since 14:02 --server github
  drawbridge audit log --caller ada --failed
  drawbridge audit log -f --json`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("limit") && q.Limit < 1 {
				return admin.UserError(fmt.Sprintf("-n wants a number of calls, 1 or more, and not %d", q.Limit))
			}
			from, err := parseSinceFlag(since, time.Now())
			if err != nil {
				return err
			}
			q.Since = from
			return d.withAudit(cmd.Context(), func(a *admin.Audit) error {
				if err := d.pack(cmd.Context(), a); err != nil {
					return err
				}
				return d.printLog(cmd.Context(), a, q, follow, asJSON)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.Server, "server", "", "only calls of the server `NAME`")
	flags.StringVar(&q.Caller, "caller", "",
		"only calls of that principal, or of clients whose name begins with `NAME`")
	flags.StringVar(&since, "since", "24h",
		"only calls since that `TIME`: 14:02, \"2006-01-02 15:04\", or an age such as 2h")
	flags.BoolVar(&q.Failed, "failed", false, "only calls that were refused, failed or have no outcome")
	flags.BoolVarP(&follow, "follow", "f", false, "keep printing new calls until the command is interrupted")
	flags.IntVarP(&q.Limit, "limit", "n", 0, "only the last `N` calls")
	flags.BoolVar(&asJSON, "json", false, "print JSON; with -f one object a line")
	return cmd
}

// printLog prints the calls that q selects. With follow, it also prints each further call when the call ends, and
// returns when ctx ends.
func (d AuditCommands) printLog(ctx context.Context, a *admin.Audit, q admin.AuditQuery, follow, asJSON bool) error {
	if follow {
		return a.Follow(ctx, q, func(r audit.Record) { d.printFollowedRecord(r, asJSON) })
	}
	calls, err := a.Calls(ctx, q)
	if err != nil {
		return err
	}
	if len(calls) == 0 && !asJSON {
		safetext.Fprintf(d.Err, "no such calls since %s\n", formatLocalTime(q.Since))
		return nil
	}
	return d.printRecords(calls, asJSON)
}

// printFollowedRecord prints one record on a line while a log is followed.
func (d AuditCommands) printFollowedRecord(r audit.Record, asJSON bool) {
	if asJSON {
		_ = printJSONLine(d.Out, r) // a closed output ends the process
		return
	}
	fmt.Fprintln(d.Out, strings.Join(auditColumns(r), "  "))
}

// printRecords prints records as one table or one JSON document.
func (d AuditCommands) printRecords(records []audit.Record, asJSON bool) error {
	if asJSON {
		return PrintJSON(d.Out, records)
	}
	tw := NewTable(d.Out)
	_, err := io.WriteString(tw, auditRows(records, tw.width))
	return errors.Join(err, tw.Flush())
}

// minAuditWidth is the smallest width of a terminal on which all columns of an audit log can be read.
const minAuditWidth = 110

// auditRows returns the rows of a table of records. On a narrow terminal the column of the duration is left out, and
// the method stands before the tool unless it is a call of a tool.
func auditRows(records []audit.Record, width int) string {
	narrow := width > 0 && width < minAuditWidth
	var b strings.Builder
	if narrow {
		b.WriteString("AT\tCALLER\tTOOL\tOUTCOME\tID\n")
	} else {
		b.WriteString("AT\tCALLER\tMETHOD\tTOOL\tOUTCOME\tTOOK\tID\n")
	}
	for _, r := range records {
		row := auditColumns(r)
		if narrow {
			at, who, method, tool, outcome, id := row[0], row[1], row[2], row[3], row[4], row[6]
			switch {
			case tool == "-":
				tool = method
			case method != mcp.MethodToolsCall:
				tool = method + " " + tool
			}
			row = []string{at, who, tool, outcome, id}
		}
		b.WriteString(strings.Join(row, "\t") + "\n")
	}
	return b.String()
}

// auditColumns returns the cells of a record: time, caller, method, tool, outcome, duration and ID.
func auditColumns(r audit.Record) []string {
	who := r.Caller.Principal
	if r.Caller.Client != "" {
		who += " (" + r.Caller.Client + ")"
	}
	what, outcome := r.Method, string(r.Outcome)
	switch r.Kind {
	case audit.Note, audit.Shield:
		what, outcome = string(r.Kind), r.Reason
	}
	if outcome == "" {
		outcome = "open"
	}
	if r.Outcome == audit.Refused && r.By != "" {
		name, _, _ := strings.Cut(r.By, ",")
		outcome += " by " + name
	}
	if (r.Outcome == audit.Refused || r.Kind == audit.AdminAction) && r.Reason != "" {
		outcome += ": " + shortReason(r.Reason)
	}
	card := r.Card
	if (r.Kind == audit.AdminAction || r.Kind == audit.Shield) && !strings.HasPrefix(card, r.Server+
		drawbridge.NameSeparator) {
		card = strings.TrimSpace(r.Server + " " + card) // the record has the server's own name of the tool
	}
	took := "-"
	if r.Duration > 0 {
		took = r.Duration.Round(10 * time.Microsecond).String()
	}
	row := []string{formatLocalTime(r.At), who, what, card, outcome, took, r.ID}
	for i, cell := range row {
		if row[i] = safetext.Line(cell); cell == "" {
			row[i] = "-"
		}
	}
	return row
}

// shortReason returns a reason for a table. Of values that need an endorsement it has the places in the arguments only.
func shortReason(reason string) string {
	if !flow.AsksForValues(reason) {
		return reason
	}
	places := flow.ReasonValues(reason)
	for i, place := range places {
		places[i], _, _ = strings.Cut(place, " (")
	}
	return truncateLine("no endorsement for "+strings.Join(places, ", "), maxPromptLine)
}
