package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/term"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/spf13/cobra"
)

// A AuditCommands is where the commands are typed.
type AuditCommands struct {
	Out, Err io.Writer
	// WithStore opens the store; the stream is not the audit's.
	WithStore func(ctx context.Context, work func(db *store.DB, stream string) error) error
	// GatewayConfig is what the flags come to.
	GatewayConfig func() gateway.Config
	// ErrAlreadyPrinted ends a command that was not done and has said so.
	ErrAlreadyPrinted error
}

// Command is the command "audit", with those below it.
func (d AuditCommands) Command() *cobra.Command {
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

// withAuditStore opens the store, once it has the records of processes that died.
func (d AuditCommands) withAuditStore(ctx context.Context, work func(db *store.DB) error) error {
	return d.WithStore(ctx, func(db *store.DB, _ string) error {
		if err := gateway.RecoverAudit(ctx, d.GatewayConfig(), db); err != nil {
			return err
		}
		return work(db)
	})
}

// A storedRecord is a record with its place in the store.
type storedRecord struct {
	audit.Record
	seq    uint64
	stored time.Time
}

// decodeStoredRecord reads a record as it is stored.
func decodeStoredRecord(r ledger.Record) (storedRecord, error) {
	rec, err := audit.DecodeRecord(r.Body)
	if err != nil {
		return storedRecord{}, &ledger.ChainError{Stream: r.Stream, Seq: r.Seq, Damage: ledger.DamageTorn}
	}
	return storedRecord{rec, r.Seq, r.At}, nil
}

// eachRecordSince reads records from a moment on. What is stored was called before: the moment is that of the call.
func eachRecordSince(records iter.Seq2[ledger.Record, error], since time.Time, each func(storedRecord) error) (
	end ledger.Record, err error) {
	for r, err := range records {
		if err != nil {
			return end, err
		}
		end = r
		l, err := decodeStoredRecord(r)
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

func (d AuditCommands) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Print all records of one call, as JSON",
		Example: "  drawbridge audit show 01JC5Z4W8QK3E9T7N2M6R1V0XB",
		Args:    exactArgs(1, "the id of a call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withAuditStore(cmd.Context(), func(db *store.DB) error {
				records, err := db.AuditRecordsOfCall(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if len(records) == 0 {
					return fmt.Errorf("the audit has no call %s (drawbridge audit log)", safetext.Line(args[0]))
				}
				rows := make([]storedRecordJSON, 0, len(records))
				for _, r := range records {
					rows = append(rows, storedRecordJSON{Seq: r.Seq, Stored: r.At, Record: r.Body})
				}
				return PrintJSON(d.Out, rows)
			})
		},
	}
}

// storedRecordJSON is a record as "show" and "export" print it: what was written of the call, as it was written.
type storedRecordJSON struct {
	Seq    uint64          `json:"seq"`
	Stored time.Time       `json:"stored"`
	Kind   string          `json:"kind,omitempty"`
	Key    string          `json:"key,omitempty"`
	Prev   string          `json:"prev,omitempty"`
	Hash   string          `json:"hash,omitempty"`
	Record json.RawMessage `json:"record"`
}

func (d AuditCommands) exportCommand() *cobra.Command {
	var since, format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print all records with their hashes, one JSON object a line",
		Long: `Print all records with their hashes, one JSON object a line: place, time of storing, the
hash before it, its own, and the record as it is stored. A chain can be checked from it
without the store.`,
		Example: "  drawbridge audit export --since 2026-03-01 > march.jsonl",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "jsonl" {
				return admin.UserError(fmt.Sprintf("there is no format %s: jsonl is the only one",
					safetext.Quote(format)))
			}
			from, err := parseSinceFlag(since, time.Now())
			if err != nil {
				return err
			}
			return d.withAuditStore(cmd.Context(), func(db *store.DB) error {
				export := d.exporter()
				for r, err := range db.AuditRecords(cmd.Context(), from) {
					if err != nil {
						return err
					}
					row := storedRecordJSON{r.Seq, r.At, r.Kind, r.Key, hex.EncodeToString(r.Prev[:]),
						hex.EncodeToString(r.Hash[:]), r.Body}
					if err := export(row); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "",
		"only what was stored since that `TIME`: 14:02, \"2006-01-02 15:04\", or how long ago, as 2h")
	cmd.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: jsonl")
	return cmd
}

// exporter returns a function that prints one record on a line. At a terminal, characters that cannot be seen stand as
// JSON escapes; anywhere else the bytes are those of the record.
func (d AuditCommands) exporter() func(storedRecordJSON) error {
	if term.IsTerminal(d.Out) {
		return func(row storedRecordJSON) error { return printJSONLine(d.Out, row) }
	}
	enc := json.NewEncoder(d.Out)
	enc.SetEscapeHTML(false)
	return func(row storedRecordJSON) error { return enc.Encode(row) }
}

// parseSinceFlag reads the time of a flag; the zero time where it is not set.
func parseSinceFlag(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := parseTime(text, now)
	if err != nil {
		return at, admin.UserError(err.Error())
	}
	return at, nil
}
