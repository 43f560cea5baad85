package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// packRows is the number of records that one transaction of PackAudit moves into blocks. Other writers wait during the
// transaction.
const packRows = 2048

// errUnpackable is the error of packSome if the next record of an earlier release is damaged. It stays as it is.
var errUnpackable = errors.New("a record of an earlier release is damaged (drawbridge audit verify)")

// UnpackedAudit returns the number of audit records that an earlier release stored one by one, and that are not in
// blocks yet.
func (db *DB) UnpackedAudit(ctx context.Context) (n int64, err error) {
	if err = db.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM audit").Scan(&n); err != nil {
		return 0, db.fault("count the records of the audit", err)
	}
	return n, nil
}

// hasUnpacked reports whether there are records for PackAudit.
func (db *DB) hasUnpacked(ctx context.Context) (has bool, err error) {
	if err := db.reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM audit)").Scan(&has); err != nil {
		return false, db.fault("pack the audit", err)
	}
	return has, nil
}

// pack moves the records of an earlier release into blocks, and imports the records of this process meanwhile.
func (a *AuditWriter) pack(ctx context.Context) {
	const pause, logEvery = 5 * time.Millisecond, 100_000
	moved, logged := 0, 0
	for ctx.Err() == nil && !a.unpackable {
		n, err := a.db.packSome(ctx)
		if err != nil {
			if ctx.Err() == nil {
				a.o.Logger.Warn("pack the audit records of an earlier release", "err", err)
			}
			a.unpackable = errors.Is(err, errUnpackable)
			return
		}
		if moved += n; n == 0 {
			break
		}
		if moved-logged >= logEvery {
			a.o.Logger.Info("the audit records of an earlier release are packed into blocks", "done", moved)
			logged = moved
		}
		if err := a.Drain(ctx); err != nil && ctx.Err() == nil {
			a.logFailure(err)
		}
		sleepContext(ctx, pause) // other processes write
	}
	if moved > 0 {
		a.o.Logger.Info("the audit records of an earlier release are in blocks", "records", moved)
	}
}

// PackAudit moves the records that an earlier release stored one by one into blocks. The records, their numbers and
// their hashes stay the same. After each part it calls report with the number of records that it has moved. The audit
// is whole at each moment: if PackAudit ends early, a later call continues. Several processes may call it, and write to
// the audit meanwhile.
func (db *DB) PackAudit(ctx context.Context, report func(moved int64)) error {
	moved := int64(0)
	for {
		n, err := db.packSome(ctx)
		if err != nil || n == 0 {
			return err
		}
		moved += int64(n)
		report(moved)
	}
}

// packSome moves up to packRows records into blocks, and returns their number.
func (db *DB) packSome(ctx context.Context) (n int, err error) {
	// Most stores have no such records. This query does not lock the store.
	if unpacked, err := db.hasUnpacked(ctx); err != nil || !unpacked {
		return 0, err
	}
	err = db.inTransaction(ctx, "pack the audit", func(tx *sql.Tx) error {
		records, err := db.oldestUnpacked(ctx, tx)
		if err != nil || len(records) == 0 {
			return err
		}
		n = len(records)
		return db.packRecords(ctx, tx, records)
	})
	return n, err
}

// oldestUnpacked returns the next records to pack. It ends before a damaged record.
func (db *DB) oldestUnpacked(ctx context.Context, tx *sql.Tx) (all []ledger.Record, err error) {
	query := "SELECT seq, at, kind, key, body, hash FROM audit WHERE stream = $1 ORDER BY seq LIMIT $2" + db.dialect.skipLocked
	rows, err := tx.QueryContext(ctx, query, AuditStream, packRows)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r := ledger.Record{Stream: AuditStream}
		var at int64
		var hash []byte
		if rows.Scan(&r.Seq, &at, &r.Kind, &r.Key, &r.Body, &hash) != nil || len(hash) != len(r.Hash) {
			if len(all) == 0 {
				return nil, errUnpackable
			}
			return all, nil
		}
		r.At, r.Hash = fromMillis(at), [32]byte(hash)
		all = append(all, r)
	}
	return all, rows.Err()
}

// packRecords moves records into blocks.
func (db *DB) packRecords(ctx context.Context, tx *sql.Tx, records []ledger.Record) error {
	first, last := records[0].Seq, records[len(records)-1].Seq
	var high []byte
	err := tx.QueryRowContext(ctx, "SELECT high FROM audit_blocks WHERE stream = $1 AND first < $2 ORDER BY first DESC LIMIT 1",
		AuditStream, int64(first)).Scan(&high)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	ends, err := checkpointsBetween(ctx, tx, first, last)
	if err != nil {
		return err
	}
	after, size := string(high), int64(0)
	for rest := records; len(rest) > 0; {
		n := packedBlock(rest, ends)
		bytes, err := db.insertBlock(ctx, tx, rest[:n], &after)
		if err != nil {
			return err
		}
		size, rest = size+bytes, rest[n:]
	}
	deleted, err := tx.ExecContext(ctx, "DELETE FROM audit WHERE stream = $1 AND seq >= $2 AND seq <= $3", AuditStream,
		int64(first), int64(last))
	if err != nil {
		return err
	}
	if n, err := deleted.RowsAffected(); err != nil || n != int64(len(records)) {
		return errors.Join(err, errors.New("another process changed the same records"))
	}
	// The size of all blocks is heads.bytes less cuts.bytes. The head is not changed, because writers lock it.
	_, err = tx.ExecContext(ctx, `INSERT INTO cuts (stream, seq, hash, bytes) VALUES ($1, 0, $2, $3)
		ON CONFLICT (stream) DO UPDATE SET bytes = cuts.bytes + excluded.bytes`, AuditStream, make([]byte, 32), -size)
	return err
}

// packedBlock returns how many of the records become the next block: consecutive ones, up to the last one in ends if
// there is one, because records are later removed up to a block that ends with a checkpoint.
func packedBlock(records []ledger.Record, ends map[uint64]bool) int {
	n := 0
	for part := range blocksOf(records) {
		n = len(part)
		break
	}
	signed := 0
	for i := range n {
		if records[i].Seq != records[0].Seq+uint64(i) { // a record is missing
			n = i
			break
		}
		if ends[records[i].Seq] {
			signed = i + 1
		}
	}
	if signed > 0 && signed <= n {
		return signed
	}
	return n
}

// checkpointsBetween returns the positions of the checkpoints in a range.
func checkpointsBetween(ctx context.Context, tx *sql.Tx, first, last uint64) (map[uint64]bool, error) {
	rows, err := tx.QueryContext(ctx, "SELECT seq FROM checkpoints WHERE stream = $1 AND seq >= $2 AND seq <= $3", AuditStream,
		int64(first), int64(last))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[uint64]bool{}
	for rows.Next() {
		var seq uint64
		if err := rows.Scan(&seq); err != nil {
			return nil, err
		}
		all[seq] = true
	}
	return all, rows.Err()
}
