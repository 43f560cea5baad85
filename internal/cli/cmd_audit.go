package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// AuditCommands implements the command "audit" and its subcommands. Every field is required.
type AuditCommands struct {
	Out, Err io.Writer
	// Admin returns the service that reads the audit.
	Admin func() *admin.Service
	// ErrAlreadyPrinted is the error of a command that failed and has printed the reason.
	ErrAlreadyPrinted error
}

// Command returns the command "audit" with its subcommands.
func (d AuditCommands) Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the record of calls: caller, tool, decision and outcome",
		Long: `Read the record of calls: caller, tool, decision with its reason, and outcome. The [audit]
section of drawbridge.toml sets which arguments are kept, and for how long.`,
		Example: `  drawbridge audit log --since 2h --failed
  drawbridge audit log --server github -f
  drawbridge audit show 01JC5Z4W8QK3E9T7N2M6R1V0XB
  drawbridge audit verify`,
	}
	cmd.AddCommand(d.logCommand(), d.showCommand(), d.verifyCommand(), d.exportCommand(),
		d.confirmClockCommand(), d.confirmStoreCommand())
	return cmd
}

// withAudit opens the audit, calls work with it, and closes it.
func (d AuditCommands) withAudit(ctx context.Context, work func(*admin.Audit) error) error {
	records, err := d.Admin().OpenAudit(ctx)
	if err != nil {
		return err
	}
	defer records.Close()
	return work(records)
}

func (d AuditCommands) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Print all records of one call, as JSON",
		Example: "  drawbridge audit show 01JC5Z4W8QK3E9T7N2M6R1V0XB",
		Args:    exactArgs(1, "the ID of a call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withAudit(cmd.Context(), func(a *admin.Audit) error {
				records, err := a.Call(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				rows := make([]storedRecordJSON, 0, len(records))
				for _, r := range records {
					rows = append(rows, storedRecordJSON{Chain: admin.FurtherChain(r), Seq: r.Seq, Stored: r.At, Record: r.Body})
				}
				return PrintJSON(d.Out, rows)
			})
		},
	}
}

// A storedRecordJSON is a stored record as "audit show" and "audit export" print it. Record is the JSON of the record,
// unchanged. Kind, Key, and the hashes Prev and Hash are set only by "audit export". Chain is empty for the first hash chain.
type storedRecordJSON struct {
	Chain  string          `json:"chain,omitempty"`
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
		Long: `Print all records with their hashes, one JSON object a line. Each line has the record's
place, the time when it was stored, the previous hash, its own hash, and the stored record. The
lines suffice to check the chain without the store.`,
		Example: "  drawbridge audit export --since 2026-03-01 > march.jsonl",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "jsonl" {
				return admin.UserError(fmt.Sprintf("unknown format %s (use jsonl)",
					safetext.Quote(format)))
			}
			from, err := parseSinceFlag(since, time.Now())
			if err != nil {
				return err
			}
			return d.withAudit(cmd.Context(), func(a *admin.Audit) error {
				export := d.exporter()
				for r, err := range a.Records(cmd.Context(), from) {
					if err != nil {
						return err
					}
					row := storedRecordJSON{admin.FurtherChain(r), r.Seq, r.At, r.Kind, r.Key, hex.EncodeToString(r.Prev[:]),
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
		"only what was stored since that `TIME`: 14:02, \"2006-01-02 15:04\", or an age such as 2h")
	cmd.Flags().StringVar(&format, "format", "jsonl", "output `FORMAT`; only jsonl exists")
	return cmd
}

// packNotice is the number of records of an earlier release from which pack prints its progress.
const packNotice = 20_000

// pack moves the records of an earlier release into blocks. If there are many, it prints how far it is.
func (d AuditCommands) pack(ctx context.Context, a *admin.Audit) error {
	printed := int64(-1)
	return a.Pack(ctx, func(moved, all int64) {
		if part := moved * 10 / all; all >= packNotice && part != printed {
			printed = part
			safetext.Fprintf(d.Err, "packing the audit of an earlier release: %d of %d records\n", min(moved, all), all)
		}
	})
}

// exporter returns a function that prints one record as a line of JSON. At a terminal, invisible characters are printed
// as JSON escapes. Any other output receives the bytes of the record unchanged.
func (d AuditCommands) exporter() func(storedRecordJSON) error {
	if IsTerminal(d.Out) {
		return func(row storedRecordJSON) error { return printJSONLine(d.Out, row) }
	}
	enc := json.NewEncoder(d.Out)
	enc.SetEscapeHTML(false)
	return func(row storedRecordJSON) error { return enc.Encode(row) }
}

// parseSinceFlag parses the value of --since. It returns the zero time for an empty text. The error is an
// admin.UserError.
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
