package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// exitUnknownSigner is the exit code of "audit verify" if the hash chain is intact, but the owner of the key that
// signed it is unknown.
const exitUnknownSigner ExitError = 3

// verificationExit returns the error that sets the exit code of "audit verify". It returns ErrAlreadyPrinted if the
// chain is broken, records were lost, or the store was replaced. For an unknown signer it returns exitUnknownSigner,
// and otherwise nil.
func (d AuditCommands) verificationExit(v *admin.AuditVerification) error {
	switch {
	case v.ChainErr != nil, v.Lost.Notes > 0, v.LostStore != nil:
		return d.ErrAlreadyPrinted
	case v.UnknownSigner != nil:
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
incomplete or edited is named, and the exit code is 1. A checkpoint must be signed by the key of
this machine or by one that --key names. With --key, at least one checkpoint must be signed by a
named key: a writer of the store can remove checkpoints, but cannot forge them.

The exit code is also 1 if the audit notes that records were lost before they were stored. A
record that a process did not finish before it died is reported. The exit code is 3 if the chain
is intact but its signer is unknown: this machine has no key, and --key names none.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.withAudit(cmd.Context(), func(a *admin.Audit) error { return d.pack(cmd.Context(), a) }); err != nil {
				return err
			}
			v, err := d.Admin().VerifyAudit(cmd.Context(), keys)
			if err != nil {
				return err
			}
			if asJSON {
				err = d.printVerificationJSON(&v)
			} else {
				d.printVerification(&v)
			}
			if err != nil {
				return err
			}
			return d.verificationExit(&v)
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "public `KEY` that may sign checkpoints, in hexadecimal; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d AuditCommands) printVerification(f *admin.AuditVerification) {
	if f.LostStore != nil {
		safetext.Fprintf(d.Out, "✗ %v\n", f.LostStore)
	}
	for _, w := range f.Waiting {
		safetext.Fprintf(d.Out, "! %s\n", w)
	}
	if f.ChainErr != nil {
		safetext.Fprintf(d.Out, "✗ audit: %v\n", f.ChainErr)
		return
	}
	if f.Last == 0 {
		fmt.Fprintln(d.Err, "the audit has no records yet")
		return
	}
	mark, but := "✓", ""
	switch {
	case f.Lost.Notes > 0:
		mark, but = "✗", ", but others are lost"
	case f.UnknownSigner != nil:
		mark, but = "!", ", but their signer is unknown"
	}
	all := uint64(0)
	for _, c := range f.All() {
		all += c.Records
	}
	safetext.Fprintf(d.Out, "%s audit: %s, unbroken%s\n", mark, formatCount(all, "record"), but)
	d.printNoteSummary("records are lost", f.Lost)
	d.printNoteSummary("a process died within a record, which it had not answered for", f.Torn)
	d.printNoteSummary("the store's clock jumped, and no record was removed by age", f.ClockJumps)
	if jump := f.Clock.Jump(); jump != "" {
		safetext.Fprintf(d.Out, "! the store's clock is not confirmed: %s\n", jump)
		safetext.Fprintln(d.Out, "  set it; or, if it is right: drawbridge audit confirm-clock")
	}
	if f.First > 1 {
		safetext.Fprintf(d.Out, "  those before record %d were taken out %s\n", f.First, removalText(f))
	}
	switch by := strings.Join(f.KeyTexts(), ", "); {
	case f.Signed == 0:
		safetext.Fprintf(d.Out, "  not signed yet, since %s\n", formatLocalTime(f.Unsigned))
	case f.UnknownSigner != nil:
		safetext.Fprintf(d.Out, "  signed up to record %d at %s, by the unknown key %s\n", f.Signed,
			formatLocalTime(f.SignedAt), by)
		safetext.Fprintf(d.Out,
			"  the owner of the key is unknown: %s (name a trusted key with drawbridge audit verify --key KEY)\n",
			safetext.Line(f.UnknownSigner.Error()))
	default:
		safetext.Fprintf(d.Out, "  signed up to record %d at %s, by %s\n", f.Signed, formatLocalTime(f.SignedAt), by)
	}
	if left := f.Last - f.Signed; f.Signed > 0 && left > 0 {
		safetext.Fprintf(d.Out, "  %d records since then are not signed yet, the first of %s\n", left,
			formatLocalTime(f.Unsigned))
	}
	for _, c := range f.Others {
		safetext.Fprintf(d.Out, "  the chain %s, written at the same time: records %d to %d, signed up to record %d\n",
			c.Stream, c.First, c.Last, c.Signed)
	}
}

// removalText returns when and why the records before the first stored record were removed.
func removalText(f *admin.AuditVerification) string {
	what := map[string]string{"age": "as too old", "number": "as more than are kept",
		"bytes": "as more bytes than are kept"}[f.RemovedBy]
	if what == "" {
		what = "by an earlier version or another program, which kept no reason"
	} else {
		what += ", the last ones " + formatLocalTime(f.RemovedAt)
	}
	if f.Loose {
		what += ", up to a place that no key has signed"
	}
	return what
}

// printNoteSummary prints how many notes of one kind exist, the newest note, and the command that shows all of them.
func (d AuditCommands) printNoteSummary(what string, n admin.NoteSummary) {
	if n.Notes == 0 {
		return
	}
	safetext.Fprintf(d.Out, "! %s: %s, the newest of %s: %s\n", what, formatCount(n.Notes, "note"),
		formatLocalTime(n.Newest), safetext.Line(n.Reason))
	safetext.Fprintf(d.Out, "  drawbridge audit log --since %q shows them\n",
		n.Oldest.Local().Format("2006-01-02 15:04"))
}

// auditVerificationJSON is the JSON document of "verify --json".
type auditVerificationJSON struct {
	Records  uint64     `json:"records"`
	First    uint64     `json:"first,omitempty"`
	Last     uint64     `json:"last,omitempty"`
	Signed   uint64     `json:"signed"`
	SignedAt *time.Time `json:"signed_at,omitempty"`
	Unsigned *time.Time `json:"unsigned_since,omitempty"`
	Keys     []string   `json:"keys"`
	// Unknown is the reason why the signer is unknown.
	Unknown string `json:"unknown_signer,omitempty"`
	// Lost summarizes the audit's notes on lost records. Torn summarizes the notes on records that a process did not
	// finish before it died. ClockJumped summarizes the notes on jumps of the store's clock; after a jump no record was
	// removed by age.
	Lost        *admin.NoteSummary `json:"lost,omitempty"`
	Torn        *admin.NoteSummary `json:"torn,omitempty"`
	ClockJumped *admin.NoteSummary `json:"clock_jumped,omitempty"`
	// RemovedAt and RemovedBy are the time and the reason of the removal of the records before First.
	RemovedAt *time.Time `json:"removed_at,omitempty"`
	RemovedBy string     `json:"removed_by,omitempty"`
	// LostStore is empty if the store is the one that was used before; otherwise it states what happened to that store.
	// Waiting lists directories with records of calls that were made for another store.
	LostStore string                 `json:"lost_store,omitempty"`
	Waiting   []gateway.WaitingSpool `json:"waiting,omitempty"`
	// Clock describes a jump of the store's clock that is not confirmed.
	Clock string `json:"clock_unconfirmed,omitempty"`
	// Chains are the further hash chains, which processes wrote at the same time. The members above are about the first.
	Chains []chainJSON `json:"chains,omitempty"`
	Broken string      `json:"broken,omitempty"`
}

// A chainJSON is a further hash chain in "verify --json".
type chainJSON struct {
	Chain   string `json:"chain"`
	Records uint64 `json:"records"`
	First   uint64 `json:"first,omitempty"`
	Last    uint64 `json:"last,omitempty"`
	Signed  uint64 `json:"signed"`
}

func (d AuditCommands) printVerificationJSON(f *admin.AuditVerification) error {
	out := auditVerificationJSON{
		Records: f.Records, First: f.First, Last: f.Last, Signed: f.Signed, Keys: f.KeyTexts(),
		Lost: nilIfEmpty(&f.Lost), Torn: nilIfEmpty(&f.Torn), ClockJumped: nilIfEmpty(&f.ClockJumps),
	}
	out.Waiting = f.Waiting
	for _, c := range f.Others {
		out.Chains = append(out.Chains, chainJSON{c.Stream, c.Records, c.First, c.Last, c.Signed})
	}
	if f.LostStore != nil {
		out.LostStore = f.LostStore.Error()
	}
	out.Clock, out.RemovedBy = f.Clock.Jump(), f.RemovedBy
	if !f.RemovedAt.IsZero() {
		out.RemovedAt = &f.RemovedAt
	}
	if f.Signed > 0 {
		out.SignedAt = &f.SignedAt
	}
	if !f.Unsigned.IsZero() {
		out.Unsigned = &f.Unsigned
	}
	if f.UnknownSigner != nil {
		out.Unknown = f.UnknownSigner.Error()
	}
	if f.ChainErr != nil {
		out.Broken = f.ChainErr.Error()
	}
	return PrintJSON(d.Out, out)
}

// nilIfEmpty returns n, or nil if n counts no notes. A nil summary is left out of the JSON.
func nilIfEmpty(n *admin.NoteSummary) *admin.NoteSummary {
	if n.Notes == 0 {
		return nil
	}
	return n
}
