package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/spf13/cobra"
)

// exitUnknownSigner is the exit code where the chain is whole, and nobody can tell who signed it.
const exitUnknownSigner ExitError = 3

// A auditVerification is what "verify" found.
type auditVerification struct {
	store.AuditReport
	// chainErr is where the chain does not hold; nil where it does.
	chainErr error
	// unknownSignerErr is why nobody can tell who signed; nil where that is known, or nothing is signed.
	unknownSignerErr error
	// lostNotes are the notes on records that are lost, torn those on one in which a process died, and jumped those on
	// a clock that jumped, so that no record was removed by age.
	lostNotes, tornNotes, jumped noteSummary
}

// noteSummary are the records of the kind "note" that say the same sort of thing.
type noteSummary struct {
	Notes  int       `json:"notes"`
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
	Reason string    `json:"reason"`
}

// add adds one.
func (n *noteSummary) add(r audit.Record) {
	if n.Notes == 0 {
		n.Oldest = r.At
	}
	n.Notes, n.Newest, n.Reason = n.Notes+1, r.At, r.Reason
}

// nilIfEmpty gives them for JSON: nil where there are none.
func (n *noteSummary) nilIfEmpty() *noteSummary {
	if n.Notes == 0 {
		return nil
	}
	return n
}

// exitError is what the command ends with.
func (f *auditVerification) exitError(quiet error) error {
	switch {
	case f.chainErr != nil, f.lostNotes.Notes > 0:
		return quiet
	case f.unknownSignerErr != nil:
		return exitUnknownSigner
	}
	return nil
}

func (d AuditCommands) verifyCommand() *cobra.Command {
	var keys []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the hash chain and the signatures of the audit",
		Long: `Check the hash chain and the signatures of the audit. The first record that is missing,
torn or edited is named, and the exit code is 1. A checkpoint must be signed by the key of
this machine, or by one that --key names; with --key, one must be by a key so named: who can write
the store can take out checkpoints, and make none.

Where the audit itself notes that records were lost before the store had them, the exit code is
1 too. Where a process died in the midst of a record, which it then had not answered for, that is
said. Where something is signed, this machine has no key and --key names none, the exit code is 3:
the chain is whole, and nobody can tell who signed it.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			trusted, unknown, err := d.trustedKeys(keys)
			if err != nil {
				return err
			}
			return d.withAuditStore(cmd.Context(), func(db *store.DB) error {
				f, err := verifyAudit(cmd.Context(), db, trusted, keys)
				if err != nil {
					return err
				}
				switch {
				case f.Signed > 0:
					f.unknownSignerErr = unknown
				case f.chainErr == nil && unknown != nil && !errors.Is(unknown, errNoMachineKey):
					return unknown
				}
				if asJSON {
					err = d.printVerificationJSON(&f)
				} else {
					d.printVerification(&f)
				}
				if err != nil {
					return err
				}
				return f.exitError(d.ErrAlreadyPrinted)
			})
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "public `KEY` that may sign checkpoints, in hexadecimal; repeats")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

var errNoMachineKey = errors.New("the key of this machine is not there")

// trustedKeys gives the keys that may sign: those that are named, and our own. Where there are none, unknown is why.
func (d AuditCommands) trustedKeys(named []string) (keys []ed25519.PublicKey, unknown, err error) {
	for _, text := range named {
		key, err := audit.ParsePublicKey(text)
		if err != nil {
			return nil, nil, admin.UserError("--key: " + err.Error())
		}
		keys = append(keys, key)
	}
	switch own, err := gateway.AuditPublicKey(d.GatewayConfig()); {
	case own != nil:
		keys = append(keys, own)
	case len(keys) > 0:
	case err != nil: // settings that cannot be read are an error of the store's too
		unknown = err
	default:
		unknown = errNoMachineKey
	}
	return keys, unknown, nil
}

// verifyAudit goes through the audit. Its error is that of a store that cannot be read at all.
func verifyAudit(ctx context.Context, db *store.DB, trusted []ed25519.PublicKey,
	named []string) (f auditVerification, err error) {
	f.AuditReport, f.chainErr = db.VerifyAudit(ctx, trusted...)
	if f.chainErr == nil {
		f.chainErr = checkSigners(f.AuditReport, named)
	}
	if f.chainErr != nil {
		return f, ctx.Err()
	}
	for r, err := range db.AuditRecords(ctx, time.Time{}) {
		if err != nil {
			return f, err
		}
		if r.Kind != string(audit.Note) {
			continue
		}
		l, err := decodeStoredRecord(r)
		if err != nil {
			return f, err
		}
		switch {
		case isTornRecordNote(l.Record):
			f.tornNotes.add(l.Record)
		case store.IsClockJump(l.Record):
			f.jumped.add(l.Record)
		default:
			f.lostNotes.add(l.Record)
		}
	}
	return f, nil
}

// isTornRecordNote says whether a note is on the one record in which a process died: what it was of was not answered.
// More bytes than a record has are several.
func isTornRecordNote(note audit.Record) bool {
	const most = 64 << 10
	return note.Bytes <= most && strings.Contains(note.Reason, "bytes that are no whole record")
}

// checkSigners wants a checkpoint of one of the keys that are named, where any are, and a beginning that is signed.
func checkSigners(report store.AuditReport, named []string) error {
	if len(named) > 0 && report.Loose {
		return fmt.Errorf("the records before %d were taken out up to a place that no key has signed", report.First)
	}
	if len(named) == 0 || slices.ContainsFunc(sortedKeyTexts(report.Keys), func(key string) bool {
		return slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, key) })
	}) {
		return nil
	}
	return errors.New(
		"nothing is signed by a key that --key names: the checkpoints were taken out, or none is there yet")
}

func (d AuditCommands) printVerification(f *auditVerification) {
	if f.chainErr != nil {
		safetext.Fprintf(d.Out, "✗ audit: %v\n", f.chainErr)
		return
	}
	if f.Last == 0 {
		fmt.Fprintln(d.Err, "the audit has no records yet")
		return
	}
	mark, but := "✓", ""
	switch {
	case f.lostNotes.Notes > 0:
		mark, but = "✗", ", but others are lost"
	case f.unknownSignerErr != nil:
		mark, but = "!", ", but nobody can tell who signed them"
	}
	safetext.Fprintf(d.Out, "%s audit: %s, unbroken%s\n", mark, formatCount(f.Records, "record"), but)
	d.printNoteSummary("records are lost", f.lostNotes)
	d.printNoteSummary("a process died within a record, which it had not answered for", f.tornNotes)
	d.printNoteSummary("the store's clock jumped, and no record was removed by age", f.jumped)
	if f.First > 1 {
		what := "as too old"
		if f.Loose {
			what = "up to a place that no key has signed"
		}
		safetext.Fprintf(d.Out, "  those before record %d were taken out %s\n", f.First, what)
	}
	switch by := strings.Join(sortedKeyTexts(f.Keys), ", "); {
	case f.Signed == 0:
		safetext.Fprintf(d.Out, "  not signed yet, since %s\n", formatLocalTime(f.Unsigned))
	case f.unknownSignerErr != nil:
		safetext.Fprintf(d.Out, "  up to record %d there are signatures, the last of %s, by whoever has %s\n", f.Signed,
			formatLocalTime(f.SignedAt), by)
		safetext.Fprintf(d.Out,
			"  whose that is nothing here says: %s (drawbridge audit verify --key KEY names the one that may sign)\n",
			safetext.Line(f.unknownSignerErr.Error()))
	default:
		safetext.Fprintf(d.Out, "  signed up to record %d at %s, by %s\n", f.Signed, formatLocalTime(f.SignedAt), by)
	}
	if left := f.Last - f.Signed; f.Signed > 0 && left > 0 {
		safetext.Fprintf(d.Out, "  %d records since then are not signed yet, the first of %s\n", left,
			formatLocalTime(f.Unsigned))
	}
}

// printNoteSummary prints what notes say, and how to read them.
func (d AuditCommands) printNoteSummary(what string, n noteSummary) {
	if n.Notes == 0 {
		return
	}
	safetext.Fprintf(d.Out, "! %s: %s, the newest of %s: %s\n", what, formatCount(n.Notes, "note"),
		formatLocalTime(n.Newest), safetext.Line(n.Reason))
	safetext.Fprintf(d.Out, "  drawbridge audit log --since %q shows them\n",
		n.Oldest.Local().Format("2006-01-02 15:04"))
}

// auditVerificationJSON is what "verify --json" prints.
type auditVerificationJSON struct {
	Records  uint64     `json:"records"`
	First    uint64     `json:"first,omitempty"`
	Last     uint64     `json:"last,omitempty"`
	Signed   uint64     `json:"signed"`
	SignedAt *time.Time `json:"signed_at,omitempty"`
	Unsigned *time.Time `json:"unsigned_since,omitempty"`
	Keys     []string   `json:"keys"`
	// Unknown says why nobody can tell whose the keys are.
	Unknown string `json:"unknown_signer,omitempty"`
	// Lost are the notes on records that are lost, Torn those on one in which a process died, and ClockJumped those on
	// a clock that jumped, so that no record was removed by age.
	Lost        *noteSummary `json:"lost,omitempty"`
	Torn        *noteSummary `json:"torn,omitempty"`
	ClockJumped *noteSummary `json:"clock_jumped,omitempty"`
	Broken      string       `json:"broken,omitempty"`
}

func (d AuditCommands) printVerificationJSON(f *auditVerification) error {
	out := auditVerificationJSON{
		Records: f.Records, First: f.First, Last: f.Last, Signed: f.Signed, Keys: sortedKeyTexts(f.Keys),
		Lost: f.lostNotes.nilIfEmpty(), Torn: f.tornNotes.nilIfEmpty(), ClockJumped: f.jumped.nilIfEmpty(),
	}
	if f.Signed > 0 {
		out.SignedAt = &f.SignedAt
	}
	if !f.Unsigned.IsZero() {
		out.Unsigned = &f.Unsigned
	}
	if f.unknownSignerErr != nil {
		out.Unknown = f.unknownSignerErr.Error()
	}
	if f.chainErr != nil {
		out.Broken = f.chainErr.Error()
	}
	return PrintJSON(d.Out, out)
}

func sortedKeyTexts(keys []ed25519.PublicKey) []string {
	all := make([]string, 0, len(keys))
	for _, key := range keys {
		all = append(all, audit.FormatPublicKey(key))
	}
	slices.Sort(all)
	return all
}
