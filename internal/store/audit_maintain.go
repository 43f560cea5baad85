package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

const (
	// A checkpoint is a signature of the last record of a chain. It is due if signRecords records are not signed,
	// or if the first unsigned record is older than signAfter. While records are imported, maintain checks this at
	// most once in maintainInterval.
	signRecords      = 256
	signAfter        = time.Minute
	maintainInterval = 10 * time.Second
	// pruneRows is the number of old records that one transaction removes; the transaction also removes the records up
	// to the end of the block, and up to the next checkpoint. The number is limited because other writers wait during
	// the transaction. maxPruneBatches is the maximum number of these transactions in one call of prune; the next call
	// removes the rest. pruneBlocks is the number of blocks that one call looks at in a chain.
	pruneRows, maxPruneBatches, pruneBlocks = 5000, 20, 4096
)

// The reasons for the removal of records.
const (
	cutByAge    = "age"
	cutByNumber = "number"
	cutByBytes  = "bytes"
)

// maintain signs the checkpoints that are due, and then removes records that exceed KeepFor, KeepRecords or KeepBytes.
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

// sign creates and stores a signed checkpoint of each chain for which one is due.
func (a *AuditWriter) sign(ctx context.Context) error {
	if a.o.Key == nil {
		return nil
	}
	streams, err := a.db.auditChains(ctx)
	for _, stream := range streams {
		if err == nil {
			err = a.signChain(ctx, stream)
		}
	}
	if err != nil {
		return a.db.fault("sign the audit", err)
	}
	return nil
}

func (a *AuditWriter) signChain(ctx context.Context, stream string) error {
	c := audit.Checkpoint{Stream: stream}
	var hash []byte
	var signed uint64
	var now, oldest int64
	err := a.db.reader.QueryRowContext(ctx, a.db.expandKeywords(`SELECT seq, hash, CLOCK,
		COALESCE((SELECT MAX(seq) FROM checkpoints WHERE stream = $1), 0) FROM heads WHERE stream = $1`),
		stream).Scan(&c.Seq, &hash, &now, &signed)
	if errors.Is(err, sql.ErrNoRows) || err == nil && c.Seq <= signed {
		return nil
	}
	if err == nil && c.Seq-signed < signRecords {
		oldest, err = a.storedAt(ctx, stream, signed+1)
		if err == nil && now-oldest < signAfter.Milliseconds() {
			return nil
		}
	}
	if err == nil && len(hash) != len(c.Hash) {
		err = &ledger.ChainError{Stream: stream, Seq: c.Seq, Damage: ledger.DamageTorn}
	}
	if err != nil {
		return err
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

// storedAt returns the time of the block with a record, or that of the record if it is not in a block.
func (a *AuditWriter) storedAt(ctx context.Context, stream string, seq uint64) (at int64, err error) {
	err = a.db.reader.QueryRowContext(ctx, `SELECT at FROM audit_blocks WHERE stream = $1 AND first <= $2 AND last >= $2
		ORDER BY first DESC LIMIT 1`, stream, int64(seq)).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		err = a.db.reader.QueryRowContext(ctx, "SELECT at FROM audit WHERE stream = $1 AND seq = $2", stream,
			int64(seq)).Scan(&at)
	}
	return at, err
}

// A blockEnd is what prune needs to know of a block.
type blockEnd struct {
	stream      string
	first, last int64
	at, size    int64
	reason      string // of the removal
	signed      bool   // records can be removed up to this block
}

// prune removes blocks that are older than KeepFor, or that exceed KeepRecords or KeepBytes. If checkpoints are signed,
// the last removed record is always one that a checkpoint signs. So a signature protects the new beginning of the hash
// chain.
func (a *AuditWriter) prune(ctx context.Context) error {
	const step = "take old records out of the audit"
	oldest, err := a.retentionStart(ctx)
	if err != nil {
		return a.db.fault(step, err)
	}
	if oldest == 0 && a.o.KeepRecords == 0 && a.o.KeepBytes == 0 {
		return nil
	}
	// The records of an earlier release are the oldest ones. They are removed after they were packed into blocks.
	if unpacked, err := a.db.hasUnpacked(ctx); err != nil || unpacked && !a.unpackable {
		return err
	}
	tooMany, tooLarge, err := a.excess(ctx)
	if err != nil {
		return a.db.fault(step, err)
	}
	chains, err := a.oldBlocks(ctx, oldest, tooMany, tooLarge)
	if err != nil {
		return a.db.fault(step, err)
	}
	batches := 0
	for _, blocks := range chains {
		first, end := int64(0), lastSigned(blocks)
		for i, b := range blocks {
			if first == 0 {
				first = b.first
			}
			if !b.signed || b.last-first+1 < pruneRows && i < end {
				continue
			}
			if batches++; batches > maxPruneBatches {
				return nil
			}
			if err := a.deleteRecordsUpTo(ctx, step, b); err != nil {
				return a.db.fault(step, err)
			}
			first = 0
		}
	}
	return nil
}

// lastSigned returns the index of the last block up to which records can be removed, or -1.
func lastSigned(blocks []blockEnd) int {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].signed {
			return i
		}
	}
	return -1
}

// excess returns by how many records and bytes the audit exceeds KeepRecords and KeepBytes.
func (a *AuditWriter) excess(ctx context.Context) (records, size int64, err error) {
	err = a.db.reader.QueryRowContext(ctx, `SELECT CAST(COALESCE(SUM(h.seq - COALESCE(c.seq, 0)), 0) AS BIGINT),
		CAST(COALESCE(SUM(h.bytes - COALESCE(c.bytes, 0)), 0) AS BIGINT) FROM heads AS h LEFT JOIN cuts AS c ON c.stream = h.stream
		WHERE h.stream = $1 OR h.stream LIKE $2`, AuditStream, AuditStream+"-%").Scan(&records, &size)
	if a.o.KeepRecords == 0 {
		records = 0
	}
	if a.o.KeepBytes == 0 {
		size = 0
	}
	return records - int64(a.o.KeepRecords), size - a.o.KeepBytes, err
}

// oldBlocks returns the blocks to remove, by chain. before is a time in milliseconds since 1970: older blocks are
// removed. Beyond these, the oldest blocks are removed until tooMany records and tooLarge bytes are removed. The last
// block of a chain stays, unless it is too old.
func (a *AuditWriter) oldBlocks(ctx context.Context, before, tooMany, tooLarge int64) ([][]blockEnd, error) {
	streams, err := a.db.auditChains(ctx)
	if err != nil {
		return nil, err
	}
	chains := make([][]blockEnd, len(streams))
	for i, stream := range streams {
		if chains[i], err = a.firstBlocks(ctx, stream); err != nil {
			return nil, err
		}
	}
	removed := make([]int, len(chains))
	for {
		oldest := -1
		for i, blocks := range chains {
			if removed[i] < len(blocks) && (oldest < 0 || blocks[removed[i]].at < chains[oldest][removed[oldest]].at) {
				oldest = i
			}
		}
		if oldest < 0 {
			break
		}
		b := &chains[oldest][removed[oldest]]
		records := b.last - b.first + 1
		switch {
		case b.at < before:
			b.reason = cutByAge
		case a.o.KeepRecords > 0 && tooMany >= records:
			b.reason = cutByNumber
		case a.o.KeepBytes > 0 && tooLarge > 0 && removed[oldest] < len(chains[oldest])-1:
			b.reason = cutByBytes
		}
		if b.reason == "" {
			break
		}
		tooMany, tooLarge = tooMany-records, tooLarge-b.size
		removed[oldest]++
	}
	for i := range chains {
		chains[i] = chains[i][:removed[i]]
		if err := a.markSigned(ctx, chains[i]); err != nil {
			return nil, err
		}
	}
	return chains, nil
}

// firstBlocks returns the first blocks of a chain.
func (a *AuditWriter) firstBlocks(ctx context.Context, stream string) (all []blockEnd, err error) {
	rows, err := a.db.reader.QueryContext(ctx, `SELECT first, last, at, size FROM audit_blocks WHERE stream = $1
		ORDER BY first LIMIT $2`, stream, pruneBlocks)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		b := blockEnd{stream: stream}
		if err := rows.Scan(&b.first, &b.last, &b.at, &b.size); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, rows.Err()
}

// markSigned sets signed in the blocks whose last record a checkpoint signs. If the writer signs no checkpoints, it
// sets signed in all.
func (a *AuditWriter) markSigned(ctx context.Context, blocks []blockEnd) error {
	if len(blocks) == 0 {
		return nil
	}
	signed := map[int64]bool{}
	if a.o.Key != nil {
		rows, err := a.db.reader.QueryContext(ctx, "SELECT seq FROM checkpoints WHERE stream = $1 AND seq >= $2 AND seq <= $3",
			blocks[0].stream, blocks[0].last, blocks[len(blocks)-1].last)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var seq int64
			if err := rows.Scan(&seq); err != nil {
				return err
			}
			signed[seq] = true
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	for i := range blocks {
		blocks[i].signed = a.o.Key == nil || signed[blocks[i].last]
	}
	return nil
}

// deleteRecordsUpTo removes the records up to and including the block b, and the checkpoints before its last record. It
// stores the position and the hash of the last removed record as the new beginning of the hash chain, with the time and
// the reason.
func (a *AuditWriter) deleteRecordsUpTo(ctx context.Context, step string, b blockEnd) error {
	return a.db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, a.db.expandKeywords(`INSERT INTO cuts (stream, seq, hash, at, reason, bytes)
			SELECT stream, last, hash, CLOCK, CAST($3 AS TEXT),
				(SELECT SUM(size) FROM audit_blocks WHERE stream = $1 AND first <= $2)
			FROM audit_blocks WHERE stream = $1 AND first = $2
			ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at = excluded.at,
			reason = excluded.reason, bytes = cuts.bytes + excluded.bytes`), b.stream, b.first, b.reason)
		for _, statement := range []string{
			"DELETE FROM audit_blocks WHERE stream = $1 AND last <= $2",
			"DELETE FROM audit_late WHERE stream = $1 AND first <= $2",
			"DELETE FROM audit WHERE stream = $1 AND seq <= $2",
			"DELETE FROM checkpoints WHERE stream = $1 AND seq < $2",
		} {
			if err == nil {
				_, err = tx.ExecContext(ctx, statement, b.stream, b.last)
			}
		}
		return err
	})
}
