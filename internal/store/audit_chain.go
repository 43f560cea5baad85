package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// The audit has one hash chain for each process that writes at the same time. Nearly always that is one, [AuditStream].
// In SQLite only one process writes at a time. In Postgres, a process that finds all chains locked begins another one,
// so that no process waits for another. A chain that is free is used by any process. Each chain names the last records
// of the others in records of the kind audit.Anchor: the others show it if the end of a chain was cut off.

// auditStreams is the condition for the names of the audit's chains in SQL.
const auditStreams = "(stream = '" + AuditStream + "' OR stream LIKE '" + AuditStream + "-%')"

// An anchorBody is the body of a record of the kind audit.Anchor. ID is the other chain, Seq the number of its last
// record and Hash the hash of that record.
type anchorBody struct {
	ID   string           `json:"id"`
	Kind audit.RecordKind `json:"kind"`
	At   time.Time        `json:"at"`
	Seq  uint64           `json:"seq"`
	Hash string           `json:"hash"`
}

// A chainWriter remembers for one process which chain it wrote last, and what that chain knows of the others.
type chainWriter struct {
	mu       sync.Mutex
	last     string
	anchored map[string]uint64 // the last record that is known, by the chain that knows it and the other
}

// A chainHead is the end of a chain.
type chainHead struct {
	stream string
	seq    uint64
	hash   [32]byte
}

// appendAudit appends records to a chain of the audit. after is the highest ID of a call in the blocks that this writer
// wrote before, see blockIndex; it is updated.
func (db *DB) appendAudit(ctx context.Context, tx *sql.Tx, w *chainWriter, records []ledger.Record, after *string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	head, at, err := db.lockChain(ctx, tx, w.last)
	if err != nil {
		return err
	}
	w.last = head.stream
	anchors, err := w.anchors(ctx, tx, head.stream, at)
	if err != nil {
		return err
	}
	records = append(records[:len(records):len(records)], anchors...)
	prev, size := head.hash, int64(0)
	for i := range records {
		r := &records[i]
		r.Stream, r.Seq, r.At, r.Prev = head.stream, head.seq+uint64(i)+1, fromMillis(at), prev
		r.Hash = ledger.ChainHash(prev, *r)
		prev = r.Hash
	}
	for part := range blocksOf(records) {
		n, err := db.insertBlock(ctx, tx, part, after)
		if err != nil {
			return err
		}
		size += n
	}
	_, err = tx.ExecContext(ctx, "UPDATE heads SET seq = $1, hash = $2, bytes = bytes + $3 WHERE stream = $4",
		int64(head.seq)+int64(len(records)), prev[:], size, head.stream)
	return err
}

// lockChain returns a chain that no other transaction writes, and locks it for this one. It prefers the chain with the
// given name. at is the store's time.
func (db *DB) lockChain(ctx context.Context, tx *sql.Tx, prefer string) (head chainHead, at int64, err error) {
	query := db.expandKeywords("SELECT stream, seq, hash, CLOCK FROM heads WHERE " + auditStreams +
		" ORDER BY CASE WHEN stream = $1 THEN 0 ELSE 1 END, stream LIMIT 1" + db.dialect.skipLocked)
	read := func() error {
		var hash []byte
		err := tx.QueryRowContext(ctx, query, prefer).Scan(&head.stream, &head.seq, &hash, &at)
		if err == nil && len(hash) != len(head.hash) {
			return &ledger.ChainError{Stream: head.stream, Seq: head.seq, Damage: ledger.DamageTorn}
		}
		if err == nil {
			head.hash = [32]byte(hash)
		}
		return err
	}
	if err = read(); !errors.Is(err, sql.ErrNoRows) {
		return head, at, err
	}
	// There is no chain, or each is locked.
	var any bool
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM heads WHERE stream = $1)", AuditStream).
		Scan(&any); err != nil {
		return head, at, err
	}
	name := AuditStream
	if any {
		name = AuditStream + "-" + strings.ToLower(rand.Text()[:8])
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO heads (stream, seq, hash) VALUES ($1, 0, $2) ON CONFLICT (stream) DO NOTHING",
		name, make([]byte, 32)); err != nil {
		return head, at, err
	}
	if err = read(); errors.Is(err, sql.ErrNoRows) { // another transaction has made and locked it meanwhile
		return db.lockChain(ctx, tx, prefer)
	}
	return head, at, err
}

// anchors returns records that name the ends of the other chains, if the chain does not know them yet. The caller must
// hold w.mu.
func (w *chainWriter) anchors(ctx context.Context, tx *sql.Tx, stream string, at int64) (all []ledger.Record, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT stream, seq, hash FROM heads WHERE "+auditStreams+
		" AND stream <> $1 ORDER BY stream", stream)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var other chainHead
		var hash []byte
		if err := rows.Scan(&other.stream, &other.seq, &hash); err != nil {
			return nil, err
		}
		known := stream + " " + other.stream
		if other.seq == 0 || len(hash) != len(other.hash) || w.anchored[known] == other.seq {
			continue
		}
		if w.anchored == nil {
			w.anchored = map[string]uint64{}
		}
		w.anchored[known] = other.seq // if the transaction fails, the next change of the other chain is anchored
		body, err := json.Marshal(anchorBody{other.stream, audit.Anchor, fromMillis(at), other.seq, hex.EncodeToString(hash)})
		if err != nil {
			return nil, err
		}
		all = append(all, ledger.Record{Kind: string(audit.Anchor), Key: other.stream, Body: body})
	}
	return all, rows.Err()
}

// blocksOf yields the parts of records that become one block each.
func blocksOf(records []ledger.Record) func(yield func([]ledger.Record) bool) {
	return func(yield func([]ledger.Record) bool) {
		for len(records) > 0 {
			n, size := 1, len(records[0].Body)
			for n < min(len(records), blockRecords) && size+len(records[n].Body) <= blockBytes {
				size += len(records[n].Body)
				n++
			}
			if !yield(records[:n]) {
				return
			}
			records = records[n:]
		}
	}
}

// insertBlock inserts a block of records whose hashes are set, and returns its size.
func (db *DB) insertBlock(ctx context.Context, tx *sql.Tx, records []ledger.Record, after *string) (size int64, err error) {
	body, err := db.blocks.encode(records)
	if err != nil {
		return 0, err
	}
	x := indexBlock(records, *after)
	*after = max(*after, x.high)
	first, last := records[0], records[len(records)-1]
	if _, err := tx.ExecContext(ctx, `INSERT INTO audit_blocks
		(stream, first, last, at, size, failed, low, high, servers, callers, hash, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		first.Stream, int64(first.Seq), int64(last.Seq), last.At.UnixMilli(), len(body), x.failed, []byte(x.low), []byte(x.high),
		x.servers, x.callers, last.Hash[:], body); err != nil {
		return 0, err
	}
	for part := range slices.Chunk(x.late, writeRows) {
		var b strings.Builder
		b.WriteString("INSERT INTO audit_late (stream, first, key) VALUES ")
		var args []any
		for i, key := range part {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteByte('(')
			db.dialect.writeParameters(&b, len(args)+1, 3)
			b.WriteByte(')')
			args = append(args, first.Stream, int64(first.Seq), key)
		}
		if _, err := tx.ExecContext(ctx, b.String(), args...); err != nil {
			return 0, err
		}
	}
	return int64(len(body)), nil
}
