package store

import (
	"context"
	"database/sql"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// writeRows is the number of journal rows that one statement inserts, and readRows the number that one query reads.
// The numbers are large enough to make the cost of a statement small, and small enough to limit memory.
const (
	writeRows = 100
	readRows  = 256
)

// A recordTable is the name of a table with records. The records of one stream form a hash chain. All record tables
// have the same columns.
type recordTable string

const (
	ledgerTable recordTable = "ledger"
	auditTable  recordTable = "audit"
)

// Append implements [ledger.Journal]. In one transaction it appends the entries and updates the head of the stream.
// The head is a row with the position and the hash of the stream's last record. It also serves as the lock on the
// stream. On a SQLite file, Append does not wait for the disk: entries that a power failure loses are appended again at
// the next listing of their server.
func (db *DB) Append(ctx context.Context, stream string, entries []ledger.Entry) ([]ledger.Entry, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	step := "append to " + stream
	records := make([]ledger.Record, len(entries))
	for i, e := range entries {
		r, err := ledger.EncodeEntry(e)
		if err != nil {
			return nil, db.newFault(step, drawbridge.InvalidInput, err)
		}
		r.Stream = stream
		records[i] = r
	}
	err := db.inCounterTransaction(ctx, step, func(tx *sql.Tx) error {
		return db.appendRecords(ctx, tx, ledgerTable,
			stream, records)
	})
	if err != nil {
		return nil, err
	}
	stored := slices.Clone(entries)
	for i, r := range records {
		stored[i].Seq, stored[i].At = r.Seq, r.At
	}
	return stored, nil
}

// appendRecords sets the positions, times and hashes of the records, and inserts them.
func (db *DB) appendRecords(ctx context.Context, tx *sql.Tx, in recordTable, stream string,
	records []ledger.Record) error {
	// The first statement advances the head, which locks the stream against other transactions.
	var seq, at int64
	var hash []byte
	err := tx.QueryRowContext(ctx, db.expandKeywords(`INSERT INTO heads (stream, seq, hash) VALUES ($1, $2, $3)
		ON CONFLICT (stream) DO UPDATE SET seq = heads.seq + excluded.seq RETURNING seq, hash, CLOCK`),
		stream, len(records), make([]byte, 32)).Scan(&seq, &hash, &at)
	if err != nil {
		return err
	}
	first := uint64(seq) - uint64(len(records)) + 1
	if len(hash) != 32 {
		return &ledger.ChainError{Stream: stream, Seq: first - 1, Damage: ledger.DamageTorn}
	}
	prev := [32]byte(hash)
	for i := range records {
		r := &records[i]
		r.Seq, r.At, r.Prev = first+uint64(i), fromMillis(at), prev
		r.Hash = ledger.ChainHash(prev, *r)
		prev = r.Hash
	}
	for part := range slices.Chunk(records, writeRows) {
		statement, args := db.dialect.insertRecords(in, stream, at, part)
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "UPDATE heads SET hash = $1 WHERE stream = $2", prev[:], stream)
	return err
}

// insertRecords returns a single statement that inserts all records, because each statement is a round trip to a
// database server. For SQLite it uses question marks, because SQLite needs quadratic time for numbered parameters.
func (d dialect) insertRecords(in recordTable, stream string, at int64, records []ledger.Record) (
	statement string, args []any) {
	var b strings.Builder
	b.WriteString("INSERT INTO " + string(in) + " (stream, at, seq, kind, key, body, hash) VALUES ")
	args = make([]any, 0, 7*len(records))
	for i := range records {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('(')
		d.writeParameters(&b, len(args)+1, 7)
		b.WriteByte(')')
		r := &records[i]
		args = append(args, stream, at, int64(r.Seq), r.Kind, r.Key, r.Body, r.Hash[:])
	}
	return b.String(), args
}

// Replay implements [ledger.Journal]. If a record cannot be decoded as an entry, the error names the record.
func (db *DB) Replay(ctx context.Context, stream string) ([]ledger.Entry, error) {
	var entries []ledger.Entry
	var end ledger.Record
	for {
		page, err := db.readPage(ctx, ledgerTable, stream, end)
		for _, r := range page {
			e, err := ledger.DecodeRecord(r)
			if err != nil {
				return nil, db.fault("replay "+stream, err)
			}
			entries = append(entries, e)
		}
		if err != nil {
			return nil, db.fault("replay "+stream, err)
		}
		if len(page) < readRows {
			return entries, nil
		}
		end = page[len(page)-1]
	}
}

// LedgerRecords returns the stored records of a stream in order, for [ledger.VerifyChains]. After the last record it
// compares that record with the head of the stream. If records at the end are missing, it yields a
// *ledger.ChainError. LedgerRecords uses no database resource while the caller processes a record, so the loop body
// may use the store. It also returns records that are appended during the loop.
func (db *DB) LedgerRecords(ctx context.Context, stream string) iter.Seq2[ledger.Record, error] {
	return db.recordsAfter(ctx, ledgerTable, stream, ledger.Record{})
}

// recordsAfter returns the records of a stream that follow the record end, with the same check as LedgerRecords.
func (db *DB) recordsAfter(ctx context.Context, in recordTable, stream string,
	end ledger.Record) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		end := end
		var promised uint64 // the head's position, if it was higher than that of the last record read
		for {
			page, err := db.readPage(ctx, in, stream, end)
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				end = r
			}
			if err == nil && len(page) == readRows {
				continue
			}
			if err == nil && len(page) == 0 && promised > end.Seq {
				err = &ledger.ChainError{Stream: stream, Seq: end.Seq + 1, Damage: ledger.DamageMissing}
			}
			if err == nil {
				promised, err = db.checkHead(ctx, stream, end)
			}
			if err != nil {
				yield(ledger.Record{}, db.fault("read "+stream, err))
				return
			}
			if promised == end.Seq {
				return
			}
		}
	}
}

// checkHead compares the head of a stream with end, the last record that was read. It returns the position of the
// head. A position after end means that another process has appended records since, or that records are missing.
// checkHead returns a *ledger.ChainError if the head is before end, or if it is at the same position and has another
// hash.
func (db *DB) checkHead(ctx context.Context, stream string, end ledger.Record) (seq uint64, err error) {
	var hash []byte
	err = db.reader.QueryRowContext(ctx, "SELECT seq, hash FROM heads WHERE stream = $1", stream).Scan(&seq, &hash)
	switch {
	case err == sql.ErrNoRows:
		err = nil // the head of an empty stream
	case err != nil:
		return 0, err
	}
	switch {
	case seq < end.Seq:
		return 0, &ledger.ChainError{Stream: stream, Seq: seq + 1, Damage: ledger.DamageEdited}
	case seq == end.Seq && seq > 0 && string(hash) != string(end.Hash[:]):
		return 0, &ledger.ChainError{Stream: stream, Seq: seq, Damage: ledger.DamageEdited}
	}
	return seq, nil
}

// readPage reads up to readRows records after the given record. If after is the zero record, it starts with the first
// record. If it returns an error, it also returns the records before the error.
func (db *DB) readPage(ctx context.Context, in recordTable, stream string, after ledger.Record) (
	[]ledger.Record, error) {
	rows, err := db.reader.QueryContext(ctx,
		"SELECT seq, at, kind, key, body, hash FROM "+string(in)+
			" WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3",
		stream, int64(after.Seq), readRows)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []ledger.Record
	for rows.Next() {
		r := ledger.Record{Stream: stream, Seq: after.Seq + 1, Prev: after.Hash}
		var at int64
		var hash []byte
		// An unexpected column value means that the record is damaged. The error of Scan is not returned, because it
		// quotes the value.
		if rows.Scan(&r.Seq, &at, &r.Kind, &r.Key, &r.Body, &hash) != nil || len(hash) != 32 {
			return page, &ledger.ChainError{Stream: stream, Seq: r.Seq, Damage: ledger.DamageTorn}
		}
		r.At, r.Hash = time.UnixMilli(at).UTC(), [32]byte(hash)
		page = append(page, r)
		after = r
	}
	return page, rows.Err()
}

// LedgerStreams returns the sorted names of the ledger's streams.
func (db *DB) LedgerStreams(ctx context.Context) ([]string, error) {
	// A stream without a head is included, so that its damage is detected.
	rows, err := db.reader.QueryContext(ctx,
		"SELECT stream FROM heads WHERE NOT "+auditStreams+" UNION SELECT DISTINCT stream FROM ledger")
	if err != nil {
		return nil, db.fault("list the streams", err)
	}
	defer rows.Close()
	var streams []string
	for rows.Next() {
		var stream string
		if err := rows.Scan(&stream); err != nil {
			return nil, db.fault("list the streams", err)
		}
		streams = append(streams, stream)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault("list the streams", err)
	}
	slices.Sort(streams) // the order in SQL depends on the database
	return streams, nil
}
