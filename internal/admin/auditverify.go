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
	// ChainErr describes the first defect of the hash chain; nil if there is none.
	ChainErr error
	// UnknownSigner is why the signer cannot be identified; nil if the signer is known or nothing is signed.
	UnknownSigner error
	// Lost summarizes the notes about lost records. Torn summarizes the notes about a record that a process did not
	// complete before it died. ClockJumps summarizes the notes about clock jumps; after a jump no records are removed by
	// age.
	Lost, Torn, ClockJumps NoteSummary
	// Clock is the state of the store's clock.
	Clock store.ClockState
	// LostStore is an error if the store is not the same store as before; nil otherwise.
	LostStore error
	// Waiting are directories with records of calls that belong to another store and are not stored yet.
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

// A NoteSummary summarizes the audit's notes of one kind.
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

// VerifyAudit checks the hash chain and the signatures of the audit. keys are public keys in hexadecimal. Checkpoints
// must be signed with the key of this machine or with one of keys. If keys is not empty, one of keys must have signed a
// checkpoint. Defects are in the result. The error is a UserError for an invalid key, a *NoStoreError, or the error of
// a store that cannot be read.
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

// trustedKeys returns the keys that may sign: the named keys and the key of this machine. If there are none, unknown is
// the reason.
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
	case err != nil: // settings that cannot be read also cause an error when the store is opened
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

// ConfirmClock accepts the present time of the store's clock, and records this in the audit. It returns the state
// before. If there is no store, the error is a *NoStoreError. If the clock of this machine differs from the store's
// clock, it is a *drawbridge.Fault.
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

// ConfirmStore accepts the store at the configured location, even if another store was there before. Then it records
// this in the audit. It returns the name of the store.
func (r *Service) ConfirmStore(ctx context.Context) (name string, err error) {
	if name, err = gateway.ConfirmStore(ctx, r.o.Gateway); err != nil {
		return name, err
	}
	act := gateway.AdminAction{Command: "audit confirm-store", Detail: name}
	return name, r.o.AdminRecorder.Run(act, func() error { return nil })
}

// isTornRecordNote reports whether a note is about the last, incomplete record of a process that died. The call of this
// record was not answered. If the note is about more bytes than one record can have, several records are lost.
func isTornRecordNote(note audit.Record) bool {
	const maxRecordBytes = 64 << 10
	return note.Bytes <= maxRecordBytes && (strings.Contains(note.Reason, "bytes of an incomplete record") ||
		strings.Contains(note.Reason, "no whole record")) // the text of earlier versions
}

// checkSigners returns nil if no keys are named. Otherwise one of the named keys must have signed a checkpoint, and
// older records must not have been removed up to an unsigned place.
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
