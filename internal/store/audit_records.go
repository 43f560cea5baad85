package store

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

const (
	// A checkpoint is a signature of the last record of the audit. It is due if signRecords records are not signed,
	// or if the first unsigned record is older than signAfter. While records are imported, maintain checks this at
	// most once in maintainInterval.
	signRecords      = 256
	signAfter        = time.Minute
	maintainInterval = 10 * time.Second
	// pruneRows is the number of old records that one transaction removes; the transaction also removes the records
	// up to the next checkpoint. The number is limited because other writers wait during the transaction.
	// maxPruneBatches is the maximum number of these transactions in one call of prune; the next call removes the
	// rest.
	pruneRows, maxPruneBatches = 5000, 20
)

// The reasons for the removal of records.
const (
	cutByAge    = "age"
	cutByNumber = "number"
)

// errAlreadyImported is the error of importRecords if another process has already imported the same part of a spool
// file.
var errAlreadyImported = errors.New("another process has imported it")

// importedBytes returns the import position of a spool file: the number of its bytes whose records are already in the
// audit.
func (db *DB) importedBytes(ctx context.Context, name string) (n int64, err error) {
	err = db.reader.QueryRowContext(ctx, "SELECT taken FROM spools WHERE name = $1", name).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, db.fault("read how much of a spool is taken in", err)
	}
	return n, nil
}

// importRecords appends records to the audit. The records are the content of the bytes from:to of a spool file. In
// the same transaction, it changes the import position of the file from from to to. If the stored position is not
// from, it appends nothing and returns errAlreadyImported.
func (db *DB) importRecords(ctx context.Context, name string, from, to int64, records []ledger.Record) error {
	return db.inTransaction(ctx, "append to the audit", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx,
			"INSERT INTO spools (name, taken) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING", name); err != nil {
			return err
		}
		moved, err := tx.ExecContext(ctx, "UPDATE spools SET taken = $1 WHERE name = $2 AND taken = $3", to, name, from)
		if err != nil {
			return err
		}
		if n, err := moved.RowsAffected(); err != nil || n != 1 {
			return cmp.Or(err, errAlreadyImported)
		}
		return db.appendRecords(ctx, tx, auditTable, AuditStream, records)
	})
}

// AuditRecords returns the stored audit records in order, starting with the first record imported at or after since.
// If since is zero, it starts with the first record. If records at the end of the chain are missing, it yields an
// error after the last record. AuditRecords uses no database resource while the caller processes a record.
func (db *DB) AuditRecords(ctx context.Context, since time.Time) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		end, err := db.LastAuditRecordBefore(ctx, since)
		if err != nil {
			yield(ledger.Record{}, err)
			return
		}
		db.recordsAfter(ctx, auditTable, AuditStream, end)(yield)
	}
}

// AuditRecordsAfter returns the audit records after r. Like AuditRecords, it yields an error if records at the end
// are missing.
func (db *DB) AuditRecordsAfter(ctx context.Context, r ledger.Record) iter.Seq2[ledger.Record, error] {
	return db.recordsAfter(ctx, auditTable, AuditStream, r)
}

// AuditRecordsOfCall returns the audit records of the call with the given ID, in order.
func (db *DB) AuditRecordsOfCall(ctx context.Context, id string) ([]ledger.Record, error) {
	rows, err := db.reader.QueryContext(ctx,
		"SELECT seq, at, kind, body FROM audit WHERE key = $1 AND stream = $2 ORDER BY seq", id, AuditStream)
	if err != nil {
		return nil, db.fault("read the audit", err)
	}
	defer rows.Close()
	var all []ledger.Record
	for rows.Next() {
		r := ledger.Record{Stream: AuditStream, Key: id}
		var at int64
		if err := rows.Scan(&r.Seq, &at, &r.Kind, &r.Body); err != nil {
			return nil, db.fault("read the audit", &ledger.ChainError{Stream: AuditStream, Seq: r.Seq,
				Damage: ledger.DamageTorn})
		}
		r.At = fromMillis(at)
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault("read the audit", err)
	}
	return all, nil
}

// LastAuditRecordBefore returns the last record imported before since, of which only Stream, Seq and Hash are set. If
// since is zero or there is no such record, it returns the last record that was removed from the audit. If none was
// removed, Seq and Hash are zero.
func (db *DB) LastAuditRecordBefore(ctx context.Context, since time.Time) (ledger.Record, error) {
	r := ledger.Record{Stream: AuditStream}
	query, args := "SELECT seq, hash FROM cuts WHERE stream = $1", []any{AuditStream}
	if !since.IsZero() {
		query = "SELECT seq, hash FROM audit WHERE stream = $1 AND at < $2 ORDER BY seq DESC LIMIT 1"
		args = append(args, since.UnixMilli())
	}
	var hash []byte
	err := db.reader.QueryRowContext(ctx, query, args...).Scan(&r.Seq, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows) && !since.IsZero():
		return db.LastAuditRecordBefore(ctx, time.Time{})
	case errors.Is(err, sql.ErrNoRows):
		return r, nil
	case err != nil:
		return r, db.fault("read the audit", err)
	case len(hash) != len(r.Hash):
		return r, db.fault("read the audit", &ledger.ChainError{Stream: AuditStream, Seq: r.Seq,
			Damage: ledger.DamageTorn})
	}
	r.Hash = [32]byte(hash)
	return r, nil
}

// AuditCheckpoints returns the checkpoints of the audit in the order of their positions.
func (db *DB) AuditCheckpoints(ctx context.Context) ([]audit.Checkpoint, error) {
	const step = "read the checkpoints of the audit"
	rows, err := db.reader.QueryContext(ctx,
		"SELECT seq, hash, at, signer, signature FROM checkpoints WHERE stream = $1 ORDER BY seq", AuditStream)
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []audit.Checkpoint
	for rows.Next() {
		c := audit.Checkpoint{Stream: AuditStream}
		var hash []byte
		var at int64
		if rows.Scan(&c.Seq, &hash, &at, &c.Signer, &c.Signature) != nil || len(hash) != len(c.Hash) {
			return nil, db.fault(step, fmt.Errorf("the checkpoint at record %d is damaged", c.Seq))
		}
		c.Hash, c.At = [32]byte(hash), fromMillis(at)
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// An AuditReport is the result of a successful check of the audit.
type AuditReport struct {
	// Records is the number of records. First and Last are the positions of the first and the last record. Records
	// before First were removed.
	Records, First, Last uint64
	// RemovedAt is the time of the last removal of records, and RemovedBy the reason: "age" or "number". Both are
	// empty if unknown, for example if an earlier release or another program removed the records.
	RemovedAt time.Time
	RemovedBy string
	// Loose reports whether old records were removed and no verified checkpoint signs the last removed record. Then
	// no signature protects the beginning of the audit.
	Loose bool
	// Signed is the last position that is signed with a trusted key, and SignedAt the time of that signature. Keys
	// are the public keys of all verified signatures.
	Signed   uint64
	SignedAt time.Time
	// Unsigned is the time of the first record after the last checkpoint; zero if all records are signed.
	Unsigned time.Time
	Keys     []ed25519.PublicKey
}

// VerifyAudit verifies the whole audit. No record may be missing, incomplete, out of order or edited. Each checkpoint
// must match the hash chain and be signed with a trusted key. If trusted is empty, each checkpoint is verified with
// the key that the checkpoint itself contains. The error names the first invalid position.
func (db *DB) VerifyAudit(ctx context.Context, trusted ...ed25519.PublicKey) (AuditReport, error) {
	var report AuditReport
	checkpoints, err := db.AuditCheckpoints(ctx)
	if err != nil {
		return report, err
	}
	before, err := db.LastAuditRecordBefore(ctx, time.Time{})
	if err != nil {
		return report, err
	}
	report.First = before.Seq + 1
	if err := db.readRemoval(ctx, &report); err != nil {
		return report, err
	}
	w := checkpointVerifier{checkpoints: checkpoints, trusted: trusted, report: &report}
	err = w.checkRecord(before)
	report.Loose = before.Seq > 0 && report.Signed != before.Seq
	if err == nil {
		err = ledger.VerifyChainsAfter(before, func(yield func(ledger.Record, error) bool) {
			for r, err := range db.recordsAfter(ctx, auditTable, AuditStream, before) {
				if err == nil {
					report.Records, report.Last = report.Records+1, r.Seq
					err = w.checkRecord(r)
					if report.Signed == r.Seq {
						report.Unsigned = time.Time{}
					} else if report.Unsigned.IsZero() {
						report.Unsigned = r.At
					}
				}
				if !yield(r, err) {
					return
				}
			}
		})
	}
	if err == nil && len(w.checkpoints) > 0 {
		err = &ledger.ChainError{Stream: AuditStream, Seq: w.checkpoints[0].Seq, Damage: ledger.DamageMissing}
	}
	if err != nil {
		return report, db.fault("verify the audit", err)
	}
	return report, nil
}

// readRemoval reads the time and the reason of the last removal of records into report.
func (db *DB) readRemoval(ctx context.Context, report *AuditReport) error {
	var at int64
	err := db.reader.QueryRowContext(ctx, "SELECT at, reason FROM cuts WHERE stream = $1", AuditStream).Scan(&at,
		&report.RemovedBy)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return db.fault("verify the audit", err)
	}
	report.RemovedAt = fromMillis(at)
	return nil
}

// A checkpointVerifier verifies the checkpoints of the audit while the records are read in order.
type checkpointVerifier struct {
	checkpoints []audit.Checkpoint // the checkpoints that are not verified yet, ordered by position
	trusted     []ed25519.PublicKey
	report      *AuditReport
}

// checkRecord verifies the checkpoints at the position of r: their signatures, and that they contain the hash of r.
// It skips checkpoints before r, because their records were removed.
func (w *checkpointVerifier) checkRecord(r ledger.Record) error {
	for len(w.checkpoints) > 0 && w.checkpoints[0].Seq <= r.Seq {
		c := w.checkpoints[0]
		w.checkpoints = w.checkpoints[1:]
		if c.Seq < r.Seq {
			continue // its records were removed
		}
		if err := c.Verify(); err != nil {
			return err
		}
		if c.Hash != r.Hash {
			return fmt.Errorf("record %d of %s: %s: it differs from the record that the checkpoint of %s signed", r.Seq,
				r.Stream, ledger.DamageEdited, c.At.Format(time.RFC3339))
		}
		is := func(key ed25519.PublicKey) bool { return key.Equal(ed25519.PublicKey(c.Signer)) }
		if len(w.trusted) > 0 && !slices.ContainsFunc(w.trusted, is) {
			return fmt.Errorf("checkpoint at record %d: it is signed by %s, which is not a key that is trusted", c.Seq,
				audit.FormatPublicKey(c.Signer))
		}
		if !slices.ContainsFunc(w.report.Keys, is) {
			w.report.Keys = append(w.report.Keys, c.Signer)
		}
		w.report.Signed, w.report.SignedAt = c.Seq, c.At
	}
	return nil
}

// maintain signs a checkpoint if one is due, and then removes records that exceed KeepFor or KeepRecords.
func (a *AuditWriter) maintain(ctx context.Context) {
	a.checkedAt = time.Now()
	if _, err := a.db.highestTime(ctx); err != nil && ctx.Err() == nil {
		a.o.Logger.Warn("read the store's clock", "err", err)
	}
	if err := a.sign(ctx); err != nil && ctx.Err() == nil {
		a.o.Logger.Warn("how far the audit has come could not be signed", "err", err)
		return
	}
	if err := a.prune(ctx); err != nil && ctx.Err() == nil {
		a.o.Logger.Warn("remove old records from the audit", "err", err)
	}
}

// sign creates and stores a signed checkpoint if one is due.
func (a *AuditWriter) sign(ctx context.Context) error {
	if a.o.Key == nil {
		return nil
	}
	c := audit.Checkpoint{Stream: AuditStream}
	var hash []byte
	var signed uint64
	var now, oldest int64
	err := a.db.reader.QueryRowContext(ctx, a.db.expandKeywords(`SELECT seq, hash, CLOCK,
		COALESCE((SELECT MAX(seq) FROM checkpoints WHERE stream = $1), 0) FROM heads WHERE stream = $1`),
		AuditStream).Scan(&c.Seq, &hash, &now, &signed)
	if errors.Is(err, sql.ErrNoRows) || err == nil && c.Seq <= signed {
		return nil
	}
	if err == nil && c.Seq-signed < signRecords {
		err = a.db.reader.QueryRowContext(ctx, "SELECT at FROM audit WHERE stream = $1 AND seq = $2", AuditStream,
			signed+1).Scan(&oldest)
		if err == nil && now-oldest < signAfter.Milliseconds() {
			return nil
		}
	}
	if err == nil && len(hash) != len(c.Hash) {
		err = &ledger.ChainError{Stream: AuditStream, Seq: c.Seq, Damage: ledger.DamageTorn}
	}
	if err != nil {
		return a.db.fault("sign the audit", err)
	}
	key, err := a.o.Key(ctx)
	if err != nil {
		return err
	}
	c.Hash, c.At = [32]byte(hash), fromMillis(now)
	c = c.Sign(key)
	return a.db.execWrite(ctx, "sign the audit", `INSERT INTO checkpoints (stream, seq, hash, at, signer, signature)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (stream, seq) DO NOTHING`,
		c.Stream, int64(c.Seq), c.Hash[:], c.At.UnixMilli(), c.Signer, c.Signature)
}

// prune removes records that are older than KeepFor, or that exceed KeepRecords. If checkpoints are signed, the last
// removed record is always one that a checkpoint signs. So a signature protects the new beginning of the hash chain.
func (a *AuditWriter) prune(ctx context.Context) error {
	const step = "take old records out of the audit"
	oldest, err := a.retentionStart(ctx)
	if err != nil {
		return a.db.fault(step, err)
	}
	if oldest == 0 && a.o.KeepRecords == 0 {
		return nil
	}
	first, last, byNumber, err := a.pruneRange(ctx, oldest)
	if err == nil && a.o.Key != nil {
		err = a.db.reader.QueryRowContext(ctx,
			"SELECT COALESCE(MAX(seq), 0) FROM checkpoints WHERE stream = $1 AND seq <= $2", AuditStream,
			last).Scan(&last)
	}
	if err != nil {
		return a.db.fault(step, err)
	}
	reason := cutByAge
	if oldest == 0 || byNumber {
		reason = cutByNumber
	}
	for range maxPruneBatches {
		if last < max(first, 1) {
			return nil
		}
		upTo := min(last, max(first, 1)+pruneRows-1)
		if a.o.Key != nil { // then last is the position of a checkpoint
			err = a.db.reader.QueryRowContext(ctx,
				"SELECT COALESCE(MIN(seq), $3) FROM checkpoints WHERE stream = $1 AND seq >= $2 AND seq <= $3",
				AuditStream, upTo, last).Scan(&upTo)
		}
		if err == nil {
			err = a.deleteRecordsUpTo(ctx, step, upTo, reason)
		}
		if err != nil {
			return a.db.fault(step, err)
		}
		first = upTo + 1
	}
	return nil
}

// deleteRecordsUpTo removes the records up to and including the position last, and the checkpoints before last. It
// stores the position and the hash of the record at last as the new beginning of the hash chain, with the time and
// the reason.
func (a *AuditWriter) deleteRecordsUpTo(ctx context.Context, step string, last int64, reason string) error {
	return a.db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, a.db.expandKeywords(`INSERT INTO cuts (stream, seq, hash, at, reason)
			SELECT stream, seq, hash, CLOCK, CAST($3 AS TEXT) FROM audit WHERE stream = $1 AND seq = $2
			ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at = excluded.at,
			reason = excluded.reason`), AuditStream, last, reason)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM audit WHERE stream = $1 AND seq <= $2", AuditStream,
			last); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM checkpoints WHERE stream = $1 AND seq < $2", AuditStream, last)
		return err
	})
}

// pruneRange returns the positions of the first and the last record to remove. oldest is a time in milliseconds since
// 1970: the records before the first record with this or a later time are too old. byNumber reports whether
// KeepRecords requires the removal of further records. The query reads only one of the remaining records, because
// there may be millions.
func (a *AuditWriter) pruneRange(ctx context.Context, oldest int64) (first, last int64, byNumber bool, err error) {
	var head, stays int64
	err = a.db.reader.QueryRowContext(ctx, `SELECT COALESCE((SELECT MIN(seq) FROM audit WHERE stream = $1), 0),
		COALESCE((SELECT MAX(seq) FROM audit WHERE stream = $1), 0)`, AuditStream).Scan(&first, &head)
	if err != nil {
		return 0, 0, false, err
	}
	err = a.db.reader.QueryRowContext(ctx, "SELECT seq FROM audit WHERE stream = $1 AND at >= $2 ORDER BY seq LIMIT 1",
		AuditStream, oldest).Scan(&stays)
	if errors.Is(err, sql.ErrNoRows) {
		stays, err = head+1, nil
	}
	if a.o.KeepRecords > 0 {
		most := head - int64(a.o.KeepRecords) + 1
		stays, byNumber = max(stays, most), most > stays
	}
	return first, stays - 1, byNumber, err
}
