// Package audit is the commands that read the record of calls: who called what, what was decided, and what came of it.
package audit

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/audit"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
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
					return fmt.Errorf("the audit has no call %s (drawbridge audit log)", manners.Printable(args[0]))
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
				return roster.Mistake(fmt.Sprintf("there is no format %q: jsonl is the only one", manners.Printable(format)))
			}
			from, err := moment(since, time.Now())
			if err != nil {
				return err
			}
			return d.read(cmd.Context(), func(db *store.DB) error {
				enc := json.NewEncoder(d.Out)
				enc.SetEscapeHTML(false)
				for r, err := range db.AuditRecords(cmd.Context(), from) {
					if err != nil {
						return err
					}
					row := storedJSON{r.Seq, r.At, r.Kind, r.Key, hex.EncodeToString(r.Prev[:]), hex.EncodeToString(r.Hash[:]), r.Body}
					if err := enc.Encode(row); err != nil {
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

// verifiedJSON is what "verify --json" prints.
type verifiedJSON struct {
	Records  uint64     `json:"records"`
	First    uint64     `json:"first,omitempty"`
	Last     uint64     `json:"last,omitempty"`
	Signed   uint64     `json:"signed"`
	SignedAt *time.Time `json:"signed_at,omitempty"`
	Unsigned *time.Time `json:"unsigned_since,omitempty"`
	Keys     []string   `json:"keys"`
	Broken   string     `json:"broken,omitempty"`
}

func (d Desk) verifyCommand() *cobra.Command {
	var keys []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chain and the signatures of the audit",
		Long: `Check the hash chain and the signatures of the audit. The first record that is missing,
torn or edited is named, and the exit code is 1. A checkpoint must be signed by the key of
this machine, or by one that --key names; with --key, one must be by a key so named: who can write
the store can take out checkpoints, and make none.`,
		Args: manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			trusted, err := d.trusted(keys)
			if err != nil {
				return err
			}
			return d.read(cmd.Context(), func(db *store.DB) error {
				report, err := db.VerifyAudit(cmd.Context(), trusted...)
				if err == nil {
					err = signedBy(report, keys)
				}
				if asJSON {
					return d.verifiedAsJSON(report, err)
				}
				return d.verified(report, err)
			})
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "public `KEY` that may sign checkpoints, in hexadecimal; repeats")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// signedBy wants a checkpoint of one of the keys that are named, where any are, and a beginning that is signed.
func signedBy(report store.AuditReport, named []string) error {
	if len(named) > 0 && report.Loose {
		return fmt.Errorf("the records before %d were taken out up to a place that no key has signed", report.First)
	}
	if len(named) == 0 || slices.ContainsFunc(texts(report.Keys), func(key string) bool {
		return slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, key) })
	}) {
		return nil
	}
	return errors.New("nothing is signed by a key that --key names: the checkpoints were taken out, or none is there yet")
}

// trusted gives the keys that may sign: those that are named, and our own.
func (d Desk) trusted(named []string) (keys []ed25519.PublicKey, err error) {
	for _, text := range named {
		key, err := audit.ParseKey(text)
		if err != nil {
			return nil, roster.Mistake("--key: " + err.Error())
		}
		keys = append(keys, key)
	}
	own, err := gateway.AuditKey(d.Config())
	if err != nil && len(keys) == 0 {
		return nil, err
	}
	if own != nil {
		keys = append(keys, own)
	}
	return keys, nil
}

func (d Desk) verified(report store.AuditReport, broken error) error {
	if broken != nil {
		fmt.Fprintf(d.Out, "✗ audit: %v\n", broken)
		return d.Quiet
	}
	if report.Last == 0 {
		fmt.Fprintln(d.Err, "the audit has no records yet")
		return nil
	}
	fmt.Fprintf(d.Out, "✓ audit: %s, unbroken\n", manners.Count(report.Records, "record"))
	if report.First > 1 {
		what := "as too old"
		if report.Loose {
			what = "up to a place that no key has signed"
		}
		fmt.Fprintf(d.Out, "  those before record %d were taken out %s\n", report.First, what)
	}
	if report.Signed > 0 {
		fmt.Fprintf(d.Out, "  signed up to record %d at %s, by %s\n", report.Signed, manners.LocalTime(report.SignedAt), strings.Join(texts(report.Keys), ", "))
	}
	if left := report.Last - report.Signed; report.Signed == 0 {
		fmt.Fprintf(d.Out, "  not signed yet, since %s\n", manners.LocalTime(report.Unsigned))
	} else if left > 0 {
		fmt.Fprintf(d.Out, "  %d records since then are not signed yet, the first of %s\n", left, manners.LocalTime(report.Unsigned))
	}
	return nil
}

func (d Desk) verifiedAsJSON(report store.AuditReport, broken error) error {
	out := verifiedJSON{Records: report.Records, First: report.First, Last: report.Last, Signed: report.Signed, Keys: texts(report.Keys)}
	if report.Signed > 0 {
		out.SignedAt = &report.SignedAt
	}
	if !report.Unsigned.IsZero() {
		out.Unsigned = &report.Unsigned
	}
	if broken != nil {
		out.Broken = broken.Error()
	}
	if err := manners.PrintJSON(d.Out, out); err != nil {
		return err
	}
	if broken != nil {
		return d.Quiet
	}
	return nil
}

func texts(keys []ed25519.PublicKey) []string {
	all := make([]string, 0, len(keys))
	for _, key := range keys {
		all = append(all, audit.KeyText(key))
	}
	slices.Sort(all)
	return all
}
