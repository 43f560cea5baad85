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

// An AuditVerification is the result of VerifyAudit.
type AuditVerification struct {
	store.AuditReport
	// ChainErr describes the first defect of the hash chain or of the signatures; nil if there is none.
	ChainErr error
	// UnknownSigner is set if the audit has signed checkpoints but no key is available with which they can be checked.
	// It is the reason why the key of this machine is not available.
	UnknownSigner error
	// Lost summarizes the notes in the audit about lost records. Torn summarizes the notes about an incomplete record,
	// which a process was writing when it died. ClockJumps summarizes the notes about jumps of the store's clock. After
	// a jump, no records are removed because of their age until a person confirms the clock.
	Lost, Torn, ClockJumps NoteSummary
	// Clock is the state of the store's clock.
	Clock store.ClockState
	// LostStore is set if another store was at the configured location before; it is nil if this is the expected store.
	LostStore error
	// Waiting are directories with records that belong to another store and are not stored there yet.
	Waiting []gateway.WaitingSpool
}

// KeyTexts returns the public keys with which checkpoints were signed, in hexadecimal, sorted.
func (v AuditVerification) KeyTexts() []string {
	all := make([]string, 0, len(v.Keys))
	for _, key := range v.Keys {
		all = append(all, audit.FormatPublicKey(key))
	}
	slices.Sort(all)
	return all
}

// A NoteSummary summarizes the notes of one kind in the audit: their number, and the times of the oldest and the
// newest.
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

// VerifyAudit checks the hash chain of the audit and the signatures of its checkpoints. keys are public keys in
// hexadecimal. Each checkpoint must be signed with the key of this machine or with one of keys. If keys is not empty,
// at least one checkpoint must be signed with one of keys. Defects of the audit are in v, not in err. The error is a
// UserError for an invalid key, a *NoStoreError, or the error of a store that cannot be read.
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

// trustedKeys returns the keys with which checkpoints may be signed: the named keys and the key of this machine. If
// there is no such key, unknown is the reason. err is a UserError for an invalid named key.
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

// ConfirmClock accepts the current time of the store's clock after a jump, so that old records can be removed again.
// The action is recorded in the audit. before is the state before the confirmation. If there is no store, the error is
// a *NoStoreError. If the clock of this machine differs from the store's clock, the error is a *drawbridge.Fault and
// nothing is confirmed.
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

// ConfirmStore accepts the store that is now at the configured location, even if another store was there before, and
// creates it if there is none. The action is recorded in the audit of this store. name is the store's path or URL, for
// the person.
func (r *Service) ConfirmStore(ctx context.Context) (name string, err error) {
	if name, err = gateway.ConfirmStore(ctx, r.o.Gateway); err != nil {
		return name, err
	}
	act := gateway.AdminAction{Command: "audit confirm-store", Detail: name}
	return name, r.o.AdminRecorder.Run(act, func() error { return nil })
}

// isTornRecordNote reports whether a note is about one incomplete record, which a process was writing when it died. The
// call of such a record got no answer. The result is false if the note is about more bytes than one record can have,
// because then several records are lost.
func isTornRecordNote(note audit.Record) bool {
	const maxRecordBytes = 64 << 10
	return note.Bytes <= maxRecordBytes && (strings.Contains(note.Reason, "bytes of an incomplete record") ||
		strings.Contains(note.Reason, "no whole record")) // the text of earlier versions
}

// checkSigners returns an error if keys are named but none of them signed a checkpoint. It also returns an error if
// keys are named and older records were removed up to a record that no checkpoint signs. Without named keys it returns
// nil.
func (v AuditVerification) checkSigners(named []string) error {
	for _, c := range v.All() {
		if len(named) > 0 && c.Loose {
			return fmt.Errorf("the records before %d were taken out up to a place that no key has signed", c.First)
		}
	}
	if len(named) == 0 || slices.ContainsFunc(v.KeyTexts(), func(key string) bool {
		return slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, key) })
	}) {
		return nil
	}
	return errors.New(
		"nothing is signed by a key that --key names: the checkpoints were taken out, or none is there yet")
}
