package admin

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// An AuditVerification is the result of a check of the audit's hash chain and signatures.
type AuditVerification struct {
	store.AuditReport
	// ChainErr names the first defect of the chain; nil where it is intact.
	ChainErr error
	// UnknownSigner is why the signer cannot be identified; nil where it is known, or nothing is signed.
	UnknownSigner error
	// Lost summarizes the notes on lost records, Torn those on a record that a process did not finish before it died,
	// and ClockJumps those on clock jumps, after which no record was removed by age.
	Lost, Torn, ClockJumps NoteSummary
	// Clock is how the clock of the store is.
	Clock store.ClockState
	// LostStore reports that it is not the store that was there before; nil if it is.
	LostStore error
	// Waiting are the records of calls beside the store that wait for another one.
	Waiting []gateway.WaitingSpool
}

// KeyTexts returns the keys that signed checkpoints, in hexadecimal, sorted.
func (v AuditVerification) KeyTexts() []string {
	all := make([]string, 0, len(v.Keys))
	for _, key := range v.Keys {
		all = append(all, audit.FormatPublicKey(key))
	}
	slices.Sort(all)
	return all
}

// A NoteSummary counts the notes of one sort in the audit.
type NoteSummary struct {
	Notes  int       `json:"notes"`
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
	// Reason is the text of the newest note.
	Reason string `json:"reason"`
}

func (n *NoteSummary) add(r audit.Record) {
	if n.Notes == 0 {
		n.Oldest = r.At
	}
	n.Notes, n.Newest, n.Reason = n.Notes+1, r.At, r.Reason
}

var errNoMachineKey = errors.New("the key of this machine is not there")

// VerifyAudit checks the hash chain and the signatures of the audit. Checkpoints must be signed by the key of this
// machine or by one of keys, in hexadecimal; with keys, one of them must have signed. Defects are in the result. The
// error is a UserError for a malformed key, a *NoStoreError, or that of a store that cannot be read.
func (r *Service) VerifyAudit(ctx context.Context, keys []string) (v AuditVerification, err error) {
	trusted, unknown, err := r.trustedKeys(ctx, keys)
	if err != nil {
		return v, err
	}
	a, err := r.OpenAudit(ctx)
	if err != nil {
		return v, err
	}
	defer a.Close()
	if v, err = a.verify(ctx, trusted, keys); err != nil {
		return v, err
	}
	v.LostStore = a.lost
	if v.Waiting, err = r.waitingSpools(ctx, a.db); err != nil {
		return v, err
	}
	if v.Clock, err = a.db.ClockState(ctx); err != nil {
		return v, err
	}
	switch {
	case v.Signed > 0:
		v.UnknownSigner = unknown
	case v.ChainErr == nil && unknown != nil && !errors.Is(unknown, errNoMachineKey):
		return v, unknown
	}
	return v, nil
}

// trustedKeys returns the keys that may sign: the named ones and that of this machine. Where there are none, unknown
// is the reason.
func (r *Service) trustedKeys(ctx context.Context, named []string) (keys []ed25519.PublicKey, unknown, err error) {
	for _, text := range named {
		key, err := audit.ParsePublicKey(text)
		if err != nil {
			return nil, nil, UserError("--key: " + err.Error())
		}
		keys = append(keys, key)
	}
	switch own, err := gateway.AuditPublicKey(ctx, r.o.Gateway); {
	case own != nil:
		keys = append(keys, own)
	case len(keys) > 0:
	case err != nil: // settings that cannot be read are an error of the store too
		unknown = err
	default:
		unknown = errNoMachineKey
	}
	return keys, unknown, nil
}

func (a *Audit) verify(ctx context.Context, trusted []ed25519.PublicKey, named []string) (v AuditVerification,
	err error) {
	v.AuditReport, v.ChainErr = a.db.VerifyAudit(ctx, trusted...)
	if v.ChainErr == nil {
		v.ChainErr = v.checkSigners(named)
	}
	if v.ChainErr != nil {
		return v, ctx.Err()
	}
	for r, err := range a.db.AuditRecords(ctx, time.Time{}) {
		if err != nil {
			return v, err
		}
		if r.Kind != string(audit.Note) {
			continue
		}
		rec, err := decodeAuditRecord(r)
		if err != nil {
			return v, err
		}
		switch {
		case isTornRecordNote(rec):
			v.Torn.add(rec)
		case store.IsClockJump(rec):
			v.ClockJumps.add(rec)
		default:
			v.Lost.add(rec)
		}
	}
	return v, nil
}

// ConfirmClock accepts the clock of the store as it is, and has that on record. It returns the state before. The error
// is a *NoStoreError where no store exists, and a *drawbridge.Fault where the clock of this machine is another.
func (r *Service) ConfirmClock(ctx context.Context) (before store.ClockState, err error) {
	a, err := r.OpenAudit(ctx)
	if err != nil {
		return before, err
	}
	defer a.Close()
	state, err := a.db.ClockState(ctx)
	if err != nil {
		return before, err
	}
	act := gateway.AdminAction{Command: "audit confirm-clock", Detail: state.Jump()}
	err = r.o.AdminRecorder.Run(act, func() error {
		before, err = a.db.ConfirmClock(ctx, time.Now())
		return err
	})
	return before, err
}

// ConfirmStore accepts the store as the one of its place, whatever was there before, and then has that on record. It
// returns the name of the store.
func (r *Service) ConfirmStore(ctx context.Context) (name string, err error) {
	if name, err = gateway.ConfirmStore(ctx, r.o.Gateway); err != nil {
		return name, err
	}
	act := gateway.AdminAction{Command: "audit confirm-store", Detail: name}
	return name, r.o.AdminRecorder.Run(act, func() error { return nil })
}

// isTornRecordNote reports whether a note is on the last record of a process that died before it was complete: its
// call was not answered. More bytes than one record can have are several lost records.
func isTornRecordNote(note audit.Record) bool {
	const maxRecordBytes = 64 << 10
	return note.Bytes <= maxRecordBytes && (strings.Contains(note.Reason, "bytes of an incomplete record") ||
		strings.Contains(note.Reason, "no whole record")) // as earlier versions wrote it
}

// checkSigners requires a checkpoint of one of the named keys, if any, and a signed beginning.
func (v AuditVerification) checkSigners(named []string) error {
	if len(named) > 0 && v.Loose {
		return fmt.Errorf("the records before %d were taken out up to a place that no key has signed", v.First)
	}
	if len(named) == 0 || slices.ContainsFunc(v.KeyTexts(), func(key string) bool {
		return slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, key) })
	}) {
		return nil
	}
	return errors.New(
		"nothing is signed by a key that --key names: the checkpoints were taken out, or none is there yet")
}
