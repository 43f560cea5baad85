package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/spf13/cobra"
)

// followInterval is how often a log that is followed looks for more.
const followInterval = 250 * time.Millisecond

// A auditLogFlags is what a person wants to see of the log.
type auditLogFlags struct {
	server, caller, since string
	failed, asJSON        bool
	follow                bool
	limit                 int
}

// matches says whether a record is asked for.
func (q auditLogFlags) matches(r audit.Record) bool {
	switch {
	case r.Kind == audit.Done: // of a call that began before
	case q.server != "" && r.Server != q.server:
	case q.caller != "" && r.Caller.Principal != q.caller && !strings.HasPrefix(r.Caller.Client, q.caller):
	case q.failed && (r.Kind == audit.Note || r.Kind == audit.Shield || !r.Outcome.Failed()):
	default:
		return true
	}
	return false
}

func (d AuditCommands) logCommand() *cobra.Command {
	var q auditLogFlags
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Print the calls, oldest first",
		Long: `Print the calls, oldest first: those of the last 24 hours, or since a time that you name.
A call without an outcome goes on, or the process died in it.`,
		Example: `  drawbridge audit log --since 14:02 --server github
  drawbridge audit log --caller ada --failed
  drawbridge audit log -f --json`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("limit") && q.limit < 1 {
				return admin.UserError(fmt.Sprintf("-n wants a number of calls, 1 or more, and not %d", q.limit))
			}
			since, err := parseSinceFlag(q.since, time.Now())
			if err != nil {
				return err
			}
			return d.withAuditStore(cmd.Context(), func(db *store.DB) error {
				return d.printLog(cmd.Context(),
					db, q, since)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.server, "server", "", "only calls of the server `NAME`")
	flags.StringVar(&q.caller, "caller", "",
		"only calls of that principal, or of clients whose name begins with `NAME`")
	flags.StringVar(&q.since, "since", "24h",
		"only calls since that `TIME`: 14:02, \"2006-01-02 15:04\", or how long ago, as 2h")
	flags.BoolVar(&q.failed, "failed", false, "only calls that were refused, failed or have no outcome")
	flags.BoolVarP(&q.follow, "follow", "f", false, "go on with what is called from now on, until the command is ended")
	flags.IntVarP(&q.limit, "limit", "n", 0, "only the last `N` of them")
	flags.BoolVar(&q.asJSON, "json", false, "print JSON; with -f one object a line")
	return cmd
}

// printLog prints what there is, and then what comes.
func (d AuditCommands) printLog(ctx context.Context, db *store.DB, q auditLogFlags, since time.Time) error {
	var records []audit.Record
	end, err := eachRecordSince(db.AuditRecords(ctx, since), since, func(l storedRecord) error {
		records = append(records, l.Record)
		return nil
	})
	if err != nil {
		return err
	}
	calls := audit.MergeOutcomes(records)
	// Each process brings its records by itself, and the store has them in the order in which they were brought.
	slices.SortStableFunc(calls, func(a, b audit.Record) int { return a.At.Compare(b.At) })
	open := map[string]audit.Record{}
	shown := make([]audit.Record, 0, len(calls))
	for _, r := range calls {
		if isOpenCall(r) && q.follow {
			open[r.ID] = r
		} else if q.matches(r) {
			shown = append(shown, r)
		}
	}
	if q.limit > 0 && len(shown) > q.limit {
		shown = shown[len(shown)-q.limit:]
	}
	if q.follow {
		for _, r := range shown {
			d.printFollowedRecord(q, r)
		}
		if end.Seq == 0 { // nothing since then: it goes on after what there was before
			if end, err = db.LastAuditRecordBefore(ctx, since); err != nil {
				return err
			}
		}
		return d.followLog(ctx, db, q, end, open)
	}
	if len(shown) == 0 && !q.asJSON {
		safetext.Fprintf(d.Err, "no such calls since %s\n", formatLocalTime(since))
		return nil
	}
	return d.printRecords(shown, q.asJSON)
}

// followLog prints calls as they end, after a record, until ctx does.
func (d AuditCommands) followLog(ctx context.Context, db *store.DB, q auditLogFlags, end ledger.Record,
	open map[string]audit.Record) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		next, err := eachRecordSince(db.AuditRecordsAfter(ctx, end), time.Time{}, func(l storedRecord) error {
			r := l.Record
			begun, known := open[r.ID]
			switch {
			case isOpenCall(r):
				open[r.ID] = r
				return nil
			case r.Kind == audit.Done && known:
				delete(open, r.ID)
				r = audit.MergeOutcomes([]audit.Record{begun, r})[0]
			}
			if q.matches(r) {
				d.printFollowedRecord(q, r)
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if next.Seq > 0 {
			end = next
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isOpenCall says whether a record is the first of two.
func isOpenCall(r audit.Record) bool {
	return (r.Kind == audit.Call || r.Kind == audit.AdminAction) && r.Outcome == ""
}

// printFollowedRecord prints one record of a log that is followed.
func (d AuditCommands) printFollowedRecord(q auditLogFlags, r audit.Record) {
	if q.asJSON {
		_ = printJSONLine(d.Out, r) // a terminal that is gone ends the command
		return
	}
	fmt.Fprintln(d.Out, strings.Join(auditColumns(r), "  "))
}

// printRecords prints records at once.
func (d AuditCommands) printRecords(records []audit.Record, asJSON bool) error {
	if asJSON {
		return PrintJSON(d.Out, records)
	}
	tw := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "AT\tCALLER\tMETHOD\tCARD\tOUTCOME\tTOOK\tID")
	for _, r := range records {
		fmt.Fprintln(tw, strings.Join(auditColumns(r), "\t"))
	}
	return tw.Flush()
}

// auditColumns are the columns of a record.
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
	if (r.Outcome == audit.Refused || r.Kind == audit.AdminAction) && r.Reason != "" {
		outcome += ": " + r.Reason
	}
	card := r.Card
	if (r.Kind == audit.AdminAction || r.Kind == audit.Shield) && !strings.HasPrefix(card, r.Server+
		drawbridge.NameSeparator) {
		card = strings.TrimSpace(r.Server + " " + card) // it is named as its server names it
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
