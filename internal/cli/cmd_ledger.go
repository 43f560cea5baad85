package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/spf13/cobra"
)

// ledgerCommands implements the command "ledger" and its subcommands. Every field is required.
type ledgerCommands struct {
	Out, Err io.Writer
	// Admin returns the service that reads the ledger.
	Admin func() *admin.Service
	// ErrAlreadyPrinted is the error of a command that failed and has printed the reason.
	ErrAlreadyPrinted error
}

// command returns the command "ledger" with its subcommands.
func (d ledgerCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Read the record of tools that were added and removed",
		Long: `Read the record of tools that were added and removed. The store has one record for the usual
configuration files and one for each set of --mcp files.`,
	}
	cmd.AddCommand(d.logCommand(), d.showCommand(), d.verifyCommand(), d.atCommand())
	return cmd
}

// withLedger opens the ledger, calls work with it, and closes it.
func (d ledgerCommands) withLedger(ctx context.Context, work func(*admin.Ledger) error) error {
	l, err := d.Admin().OpenLedger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	return work(l)
}

// A ledgerEntryJSON is an entry of the ledger as --json prints it.
type ledgerEntryJSON struct {
	Seq        uint64          `json:"seq"`
	At         time.Time       `json:"at"`
	Op         ledger.EntryOp  `json:"op"`
	Key        ledger.CardKey  `json:"key"`
	Server     string          `json:"server"`
	Tool       string          `json:"tool,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

func newLedgerEntryJSON(e ledger.Entry, whole bool) ledgerEntryJSON {
	out := ledgerEntryJSON{Seq: e.Seq, At: e.At, Op: e.Op, Key: e.Key, Server: string(e.Server)}
	if e.Card != nil {
		out.Tool = e.Card.Tool
		if whole {
			out.Definition = e.Card.Definition
		}
	}
	return out
}

func (d ledgerCommands) logCommand() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Print the events, oldest first",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.withLedger(cmd.Context(), func(l *admin.Ledger) error {
				entries, err := l.Entries(cmd.Context())
				if err != nil {
					return err
				}
				if len(entries) == 0 {
					return d.printOtherStreams(cmd.Context(), l)
				}
				if limit > 0 && len(entries) > limit {
					entries = entries[len(entries)-limit:]
				}
				return d.printEntries(entries, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "only the last `N` events")
	return cmd
}

// printOtherStreams prints that the ledger of this configuration has no entries. It also names the other ledgers in the
// store, because each set of --mcp files has a ledger of its own.
func (d ledgerCommands) printOtherStreams(ctx context.Context, l *admin.Ledger) error {
	streams, err := l.Streams(ctx)
	if err != nil {
		return err
	}
	safetext.Fprintf(d.Err, "the record %q has no events yet\n", l.Stream)
	if len(streams) > 0 {
		safetext.Fprintf(d.Err, "this store has events of: %s (name the same --mcp files)\n",
			strings.Join(streams, ", "))
	}
	return nil
}

func (d ledgerCommands) printEntries(entries []ledger.Entry, asJSON bool) error {
	if asJSON {
		rows := make([]ledgerEntryJSON, 0, len(entries))
		for _, e := range entries {
			rows = append(rows, newLedgerEntryJSON(e, false))
		}
		return PrintJSON(d.Out, rows)
	}
	tools := map[ledger.CardKey]string{}
	tw := NewTable(d.Out)
	fmt.Fprintln(tw, "SEQ\tAT\tEVENT\tSERVER\tTOOL\tKEY")
	for _, e := range entries {
		if e.Card != nil {
			tools[e.Key] = e.Card.Tool
		}
		safetext.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\n", e.Seq, formatLocalTime(e.At), e.Op, e.Server,
			tools[e.Key], e.Key)
	}
	return tw.Flush()
}

func (d ledgerCommands) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show SEQ|KEY",
		Short:   "Print one event whole, or all events of one key, as JSON",
		Example: "  drawbridge ledger show 12\n  drawbridge ledger show bk_729650ff4b89b19bc3a9ef3f8260cb7b",
		Args:    exactArgs(1, "the number or the key of an event"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withLedger(cmd.Context(), func(l *admin.Ledger) error {
				found, err := l.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				rows := make([]ledgerEntryJSON, 0, len(found))
				for _, e := range found {
					rows = append(rows, newLedgerEntryJSON(e, true))
				}
				return PrintJSON(d.Out, rows)
			})
		},
	}
}

func (d ledgerCommands) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chain of every record in the store",
		Long:  "Check the hash chain of every record in the store. The first record that is missing, incomplete or edited is named, and the exit code is 1.",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.withLedger(cmd.Context(), func(l *admin.Ledger) error {
				streams, err := l.Streams(cmd.Context())
				if err != nil {
					return err
				}
				broken := false
				for _, stream := range streams {
					n, err := l.Verify(cmd.Context(), stream)
					if err != nil {
						broken = true
						safetext.Fprintf(d.Out, "✗ %s: %v\n", stream, err)
						continue
					}
					safetext.Fprintf(d.Out, "✓ %s: %s, unbroken\n", stream, formatCount(n, "record"))
				}
				if broken {
					return d.ErrAlreadyPrinted
				}
				if len(streams) == 0 {
					fmt.Fprintln(d.Err, "the store has no records yet")
				}
				return nil
			})
		},
	}
}

func (d ledgerCommands) atCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "at TIME",
		Short: "Print the tools that were available at a time",
		Example: `  drawbridge ledger at 14:02
  drawbridge ledger at "2026-03-01 14:02"
  drawbridge ledger at 2h`,
		Long: `Print the tools that were available at a time: a time of today (14:02), a date and time in local
time, an RFC 3339 time, or how long ago (2h, 15m).`,
		Args: exactArgs(1, "one time"),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseTime(args[0], time.Now())
			if err != nil {
				return admin.UserError(err.Error())
			}
			return d.withLedger(cmd.Context(), func(l *admin.Ledger) error {
				entries, err := l.Entries(cmd.Context())
				if err != nil {
					return err
				}
				if len(entries) == 0 {
					return d.printOtherStreams(cmd.Context(), l)
				}
				return d.printDeck(ledger.FromLog(entries).SnapshotAt(at), asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d ledgerCommands) printDeck(s ledger.Snapshot, asJSON bool) error {
	live := s.Live()
	if asJSON {
		rows := make([]ledgerEntryJSON, 0, len(live))
		for _, e := range live {
			rows = append(rows, newLedgerEntryJSON(e, true))
		}
		return PrintJSON(d.Out, rows)
	}
	tw := NewTable(d.Out)
	fmt.Fprintln(tw, "SERVER\tTOOL\tSINCE\tKEY")
	for _, e := range live {
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\n", e.Server, e.Card.Tool, formatLocalTime(e.At), e.Key)
	}
	return tw.Flush()
}
