package store

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/ledger"
)

const (
	// chunkBlocks and chunkBytes limit what one query reads of the blocks of a chain. The last block may exceed
	// chunkBytes.
	chunkBlocks, chunkBytes = 64, 1 << 20
)

// An AuditPosition is a place in the audit: the last record before it, by hash chain. Of the records only Stream, Seq
// and Hash are set. A chain that is missing begins with its first record.
type AuditPosition map[string]ledger.Record

// Advance moves the position behind the record r.
func (p AuditPosition) Advance(r ledger.Record) {
	p[r.Stream] = ledger.Record{Stream: r.Stream, Seq: r.Seq, Hash: r.Hash}
}

// AuditRecords returns the stored audit records in the order in which they were stored, starting with the first record
// imported at or after since. If since is zero, it starts with the first record. If records at the end of a chain are
// missing, it yields an error after the last record. AuditRecords uses no database resource while the caller processes
// a record.
func (db *DB) AuditRecords(ctx context.Context, since time.Time) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		p, err := db.AuditPositionBefore(ctx, since)
		if err != nil {
			yield(ledger.Record{}, err)
			return
		}
		begun := map[string]bool{} // a block may begin with records from before since
		for r, err := range db.AuditRecordsAfter(ctx, p) {
			if err == nil && !begun[r.Stream] && r.At.Before(since) {
				continue
			}
			begun[r.Stream] = true
			if !yield(r, err) {
				return
			}
		}
	}
}

// AuditRecordsAfter returns the audit records after a position. Like AuditRecords, it yields an error if records at the
// end of a chain are missing.
func (db *DB) AuditRecordsAfter(ctx context.Context, p AuditPosition) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		streams, err := db.auditChains(ctx)
		var all []iter.Seq2[ledger.Record, error]
		for _, stream := range streams {
			end, known := p[stream]
			if !known && err == nil {
				end, err = db.chainStart(ctx, stream, time.Time{})
			}
			all = append(all, db.chainAfter(ctx, end))
		}
		switch {
		case err != nil:
			yield(ledger.Record{}, db.fault("read the audit", err))
		case len(all) == 1:
			all[0](yield)
		default:
			mergeChains(all, yield)
		}
	}
}

// mergeChains yields the records of several chains in the order of their times. After the first error, it ends.
func mergeChains(all []iter.Seq2[ledger.Record, error], yield func(ledger.Record, error) bool) {
	type source struct {
		next func() (ledger.Record, error, bool)
		r    ledger.Record
		err  error
	}
	var sources []*source
	for _, chain := range all {
		next, stop := iter.Pull2(chain)
		defer stop()
		s := &source{next: next}
		var more bool
		if s.r, s.err, more = next(); more {
			sources = append(sources, s)
		}
	}
	for len(sources) > 0 {
		first := 0
		for i, s := range sources {
			if s.err != nil { // errors last, so that the other chains are read
				continue
			}
			if f := sources[first]; f.err != nil || s.r.At.Before(f.r.At) {
				first = i
			}
		}
		s := sources[first]
		if !yield(s.r, s.err) || s.err != nil {
			return
		}
		var more bool
		if s.r, s.err, more = s.next(); !more {
			sources = slices.Delete(sources, first, first+1)
		}
	}
}

// auditChains returns the names of the audit's hash chains, sorted; AuditStream is always one of them.
func (db *DB) auditChains(ctx context.Context) ([]string, error) {
	rows, err := db.reader.QueryContext(ctx, "SELECT stream FROM heads WHERE "+auditStreams+
		" UNION SELECT DISTINCT stream FROM audit_blocks")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	streams := []string{AuditStream}
	for rows.Next() {
		var stream string
		if err := rows.Scan(&stream); err != nil {
			return nil, err
		}
		if stream != AuditStream {
			streams = append(streams, stream)
		}
	}
	slices.Sort(streams)
	return streams, rows.Err()
}

// AuditPositionBefore returns the position of the first record that was imported at or after since. If since is zero,
// it returns the position of the first record that was not removed.
func (db *DB) AuditPositionBefore(ctx context.Context, since time.Time) (AuditPosition, error) {
	const step = "read the audit"
	streams, err := db.auditChains(ctx)
	if err != nil {
		return nil, db.fault(step, err)
	}
	p := AuditPosition{}
	for _, stream := range streams {
		if p[stream], err = db.chainStart(ctx, stream, since); err != nil {
			return nil, db.fault(step, err)
		}
	}
	return p, nil
}

// chainStart returns where to begin to read a chain for the records that were imported at or after since: the last
// record of the block before them. If there is no such block, or if since is zero, it returns the last record that was
// removed from the chain; if none was removed, Seq and Hash are zero. Only Stream, Seq and Hash of the result are set.
func (db *DB) chainStart(ctx context.Context, stream string, since time.Time) (ledger.Record, error) {
	r := ledger.Record{Stream: stream}
	if !since.IsZero() {
		for _, query := range []string{
			"SELECT last, hash FROM audit_blocks WHERE stream = $1 AND at < $2 ORDER BY first DESC LIMIT 1",
			"SELECT seq, hash FROM audit WHERE stream = $1 AND at < $2 ORDER BY seq DESC LIMIT 1",
		} {
			if err := db.laterRecord(ctx, &r, query, stream, since.UnixMilli()); err != nil {
				return r, err
			}
		}
	}
	if r.Seq > 0 {
		return r, nil
	}
	return r, db.laterRecord(ctx, &r, "SELECT seq, hash FROM cuts WHERE stream = $1", stream)
}

// laterRecord replaces Seq and Hash of r by the row of a query, if the row has a higher Seq.
func (db *DB) laterRecord(ctx context.Context, r *ledger.Record, query string, args ...any) error {
	var seq uint64
	var hash []byte
	err := db.reader.QueryRowContext(ctx, query, args...).Scan(&seq, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case len(hash) != len(r.Hash):
		return &ledger.ChainError{Stream: r.Stream, Seq: seq, Damage: ledger.DamageTorn}
	case seq > r.Seq:
		r.Seq, r.Hash = seq, [32]byte(hash)
	}
	return nil
}

// chainAfter returns the records of a chain that follow the record end. After the last record it compares that record
// with the head of the chain. If records at the end are missing, it yields a *ledger.ChainError. It also returns
// records that are appended during the loop.
func (db *DB) chainAfter(ctx context.Context, end ledger.Record) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		err := db.eachChunk(ctx, end, func(c auditChunk) (bool, error) {
			for _, r := range c.records {
				if !yield(r, nil) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(ledger.Record{}, db.fault("read "+end.Stream, err))
		}
	}
}

// eachChunk calls each for the parts of a chain after the record end, until each returns false or an error. It then
// checks the head of the chain, see chainAfter.
func (db *DB) eachChunk(ctx context.Context, end ledger.Record, each func(auditChunk) (bool, error)) error {
	var promised uint64 // the head's position, if it was higher than that of the last record read
	for {
		c, err := db.readChunk(ctx, end)
		if err != nil {
			return err
		}
		if n := len(c.records); n > 0 {
			more, err := each(c)
			if err != nil || !more {
				return err
			}
			if c.torn != nil {
				return c.torn
			}
			end = c.records[n-1]
			continue
		}
		if c.torn != nil {
			return c.torn
		}
		if promised > end.Seq {
			return &ledger.ChainError{Stream: end.Stream, Seq: end.Seq + 1, Damage: ledger.DamageMissing}
		}
		if promised, err = db.checkHead(ctx, end.Stream, end); err != nil || promised == end.Seq {
			return err
		}
	}
}

// An auditChunk is a part of a chain.
type auditChunk struct {
	records []ledger.Record
	// damage is the first record that is missing, or that its hash does not fit; nil if there is none. torn is set if
	// the chain cannot be read after the records.
	damage, torn *ledger.ChainError
	// blocks are the blocks that the records are from; nil for records that are not in blocks.
	blocks []storedBlock
}

// A storedBlock is a row of audit_blocks.
type storedBlock struct {
	stream      string
	first, last uint64
	at          int64
	hash, body  []byte
	index       blockIndex // without late
}

// readChunk reads records of a chain after the given one.
func (db *DB) readChunk(ctx context.Context, end ledger.Record) (c auditChunk, err error) {
	for again := range 2 {
		blocks, err := db.readBlocks(ctx, end)
		if err != nil {
			return c, err
		}
		if len(blocks) > 0 && (blocks[0].first <= end.Seq+1 || again > 0) {
			return db.chunkOf(blocks, end)
		}
		before := uint64(1<<63 - 1)
		if len(blocks) > 0 {
			before = blocks[0].first
		}
		if c, err = db.readUnpacked(ctx, end, before); err != nil || len(c.records) > 0 || c.torn != nil {
			return c, err
		}
		// The records may have been packed into a block since the first query.
	}
	return c, nil
}

// chunkOf decodes consecutive blocks.
func (db *DB) chunkOf(blocks []storedBlock, end ledger.Record) (c auditChunk, err error) {
	for i, b := range blocks {
		if i > 0 && b.first != end.Seq+1 {
			break
		}
		records, damage, err := db.decodeBlock(b, end)
		if err != nil {
			if damage == nil {
				return c, err
			}
			c.torn = damage
			return c, nil
		}
		if c.damage == nil {
			c.damage = damage
		}
		c.records, c.blocks = append(c.records, records...), append(c.blocks, b)
		end = records[len(records)-1]
	}
	return c, nil
}

const blockColumns = "stream, first, last, at, hash, body, failed, low, high, servers, callers"

func scanAuditBlock(rows *sql.Rows) (b storedBlock, err error) {
	var low, high []byte
	err = rows.Scan(&b.stream, &b.first, &b.last, &b.at, &b.hash, &b.body, &b.index.failed, &low, &high, &b.index.servers,
		&b.index.callers)
	b.index.low, b.index.high = string(low), string(high)
	return b, err
}

// readBlocks reads blocks of a chain, starting with the one that contains the record after end, or with the next one.
func (db *DB) readBlocks(ctx context.Context, end ledger.Record) (all []storedBlock, err error) {
	rows, err := db.reader.QueryContext(ctx, "SELECT "+blockColumns+` FROM audit_blocks WHERE stream = $1
		AND first >= COALESCE((SELECT MAX(first) FROM audit_blocks WHERE stream = $1 AND first <= $2), 0) AND last >= $2
		ORDER BY first LIMIT $3`, end.Stream, int64(end.Seq)+1, chunkBlocks)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; size < chunkBytes && rows.Next(); {
		b, err := scanAuditBlock(rows)
		if err != nil {
			return nil, &ledger.ChainError{Stream: end.Stream, Seq: end.Seq + 1, Damage: ledger.DamageTorn}
		}
		size += len(b.body)
		all = append(all, b)
	}
	return all, rows.Err()
}

// decodeBlock returns the records of a block that follow the record end. damage is the first record that does not fit
// its hash or the record before. If err is not nil, the block cannot be decoded.
func (db *DB) decodeBlock(b storedBlock, end ledger.Record) (records []ledger.Record, damage *ledger.ChainError, err error) {
	parts, err := db.blocks.decode(b.body)
	if err == nil && (b.last < b.first || uint64(len(parts)) != b.last-b.first+1 || len(b.hash) != len(end.Hash) ||
		b.last <= end.Seq) {
		err = errBlock
	}
	if err != nil {
		return nil, &ledger.ChainError{Stream: b.stream, Seq: max(b.first, end.Seq+1), Damage: ledger.DamageTorn}, err
	}
	fail := func(seq uint64, d ledger.DamageKind) {
		if damage == nil {
			damage = &ledger.ChainError{Stream: b.stream, Seq: seq, Damage: d}
		}
	}
	if b.first > end.Seq+1 {
		fail(end.Seq+1, ledger.DamageMissing)
	}
	prev := end.Hash
	for i, p := range parts {
		r := ledger.Record{Stream: b.stream, Seq: b.first + uint64(i), At: time.UnixMilli(p.at).UTC(), Kind: string(p.kind),
			Key: string(p.key), Body: p.body, Prev: prev}
		if r.Seq <= end.Seq {
			continue
		}
		r.Hash = ledger.ChainHash(prev, r)
		if string(r.Hash[:checkLen]) != string(p.hash) {
			fail(r.Seq, ledger.DamageEdited)
			copy(r.Hash[:], p.hash)
		}
		if r.Seq == b.last && string(r.Hash[:]) != string(b.hash) {
			fail(r.Seq, ledger.DamageEdited)
			r.Hash = [32]byte(b.hash)
		}
		prev = r.Hash
		records = append(records, r)
	}
	return records, damage, nil
}

// readUnpacked reads records after end and before the number before that an earlier release stored, and that are not in
// blocks yet.
func (db *DB) readUnpacked(ctx context.Context, end ledger.Record, before uint64) (c auditChunk, err error) {
	if end.Stream != AuditStream {
		return c, nil
	}
	page, err := db.readPage(ctx, auditTable, AuditStream, end)
	if torn, ok := errors.AsType[*ledger.ChainError](err); ok {
		c.torn, err = torn, nil
	}
	if err != nil {
		return c, err
	}
	prev := end
	for _, r := range page {
		if r.Seq >= before {
			break
		}
		switch {
		case c.damage != nil:
		case r.Seq != prev.Seq+1:
			c.damage = &ledger.ChainError{Stream: AuditStream, Seq: prev.Seq + 1, Damage: ledger.DamageMissing}
		case r.Hash != ledger.ChainHash(prev.Hash, r):
			c.damage = &ledger.ChainError{Stream: AuditStream, Seq: r.Seq, Damage: ledger.DamageEdited}
		}
		c.records = append(c.records, r)
		prev = r
	}
	return c, nil
}
