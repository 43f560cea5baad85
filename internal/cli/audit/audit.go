// Package audit is the commands that read the record of calls: who called what, what was decided, and what came of it.
package audit

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/drawbridge-mcp/drawbridge/audit"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

// A Desk is where the commands are typed.
type Desk struct {
	Out, Err io.Writer
	// Journal opens the store; the stream is not the audit's.
	Journal func(ctx context.Context, work func(db *store.DB, stream string) error) error
	// Config is what the flags come to.
	Config func() gateway.Config
	// Quiet ends a command that was not done and has said so.
	Quiet error
}

// Command is the command "audit", with those below it.
func (d Desk) Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the record of calls: who called what, and what came of it",
		Long: `Read the record of calls: who called what through which door, what was decided and why,
and what came of it. What is kept of arguments, and for how long, says [audit] in
drawbridge.toml.`,
		Example: `  drawbridge audit log --since 2h --failed
  drawbridge audit log --server github -f
  drawbridge audit show 01JC5Z4W8QK3E9T7N2M6R1V0XB
  drawbridge audit verify`,
	}
	cmd.AddCommand(d.logCommand(), d.showCommand(), d.verifyCommand(), d.exportCommand())
	return cmd
}

// read opens the store, once it has the records of processes that died.
func (d Desk) read(ctx context.Context, work func(db *store.DB) error) error {
	return d.Journal(ctx, func(db *store.DB, _ string) error {
		if err := gateway.TakeInAudit(ctx, d.Config(), db); err != nil {
			return err
		}
		return work(db)
	})
}

// A line is a record with its place in the store.
type line struct {
	audit.Record
	seq    uint64
	stored time.Time
}

// lineOf reads a record as it is stored.
func lineOf(r ledger.Record) (line, error) {
	rec, err := audit.Decode(r.Body)
	if err != nil {
		return line{}, &ledger.Break{Stream: r.Stream, Seq: r.Seq, What: ledger.Torn}
	}
	return line{rec, r.Seq, r.At}, nil
}

// lines reads records from a moment on. What is stored was called before: the moment is that of the call.
func lines(records iter.Seq2[ledger.Record, error], since time.Time, each func(line) error) (end ledger.Record, err error) {
	for r, err := range records {
		if err != nil {
			return end, err
		}
		end = r
		l, err := lineOf(r)
		if err != nil {
			return end, err
		}
		if l.At.Before(since) {
			continue
		}
		if err := each(l); err != nil {
			return end, err
		}
	}
	return end, nil
}

func (d Desk) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Print all records of one call, as JSON",
		Example: "  drawbridge audit show 01JC5Z4W8QK3E9T7N2M6R1V0XB",
		Args:    manners.Exactly(1, "the id of a call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.read(cmd.Context(), func(db *store.DB) error {
				records, err := db.AuditOf(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if len(records) == 0 {
					return fmt.Errorf("the audit has no call %s (drawbridge audit log)", safetext.Line(args[0]))
				}
				rows := make([]storedJSON, 0, len(records))
				for _, r := range records {
					rows = append(rows, storedJSON{Seq: r.Seq, Stored: r.At, Record: r.Body})
				}
				return manners.PrintJSON(d.Out, rows)
			})
		},
	}
}

// storedJSON is a record as "show" and "export" print it: what was written of the call, as it was written.
type storedJSON struct {
	Seq    uint64          `json:"seq"`
	Stored time.Time       `json:"stored"`
	Kind   string          `json:"kind,omitempty"`
	Key    string          `json:"key,omitempty"`
	Prev   string          `json:"prev,omitempty"`
	Hash   string          `json:"hash,omitempty"`
	Record json.RawMessage `json:"record"`
}

func (d Desk) exportCommand() *cobra.Command {
	var since, format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print all records with their hashes, one JSON object a line",
		Long: `Print all records with their hashes, one JSON object a line: place, time of storing, the
hash before it, its own, and the record as it is stored. A chain can be checked from it
without the store.`,
		Example: "  drawbridge audit export --since 2026-03-01 > march.jsonl",
		Args:    manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "jsonl" {
				return roster.Mistake(fmt.Sprintf("there is no format %s: jsonl is the only one", safetext.Quote(format)))
			}
			from, err := moment(since, time.Now())
			if err != nil {
				return err
			}
			return d.read(cmd.Context(), func(db *store.DB) error {
				export := d.exporter()
				for r, err := range db.AuditRecords(cmd.Context(), from) {
					if err != nil {
						return err
					}
					row := storedJSON{r.Seq, r.At, r.Kind, r.Key, hex.EncodeToString(r.Prev[:]), hex.EncodeToString(r.Hash[:]), r.Body}
					if err := export(row); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only what was stored since that `TIME`: 14:02, \"2006-01-02 15:04\", or how long ago, as 2h")
	cmd.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: jsonl")
	return cmd
}

// exporter returns a function that prints one record on a line. At a terminal, characters that cannot be seen stand as
// JSON escapes; anywhere else the bytes are those of the record.
func (d Desk) exporter() func(storedJSON) error {
	if terminal.Is(d.Out) {
		return func(row storedJSON) error { return manners.PrintJSONLine(d.Out, row) }
	}
	enc := json.NewEncoder(d.Out)
	enc.SetEscapeHTML(false)
	return func(row storedJSON) error { return enc.Encode(row) }
}

// moment reads the time of a flag; the zero time where it is not set.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := manners.Moment(text, now)
	if err != nil {
		return at, roster.Mistake(err.Error())
	}
	return at, nil
}
