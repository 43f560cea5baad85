package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// SetClockAhead sets the store's clock ahead of the real one. It is called before the store is used.
func (db *DB) SetClockAhead(d time.Duration) {
	clock := db.dialect.keywords.Replace("CLOCK")
	db.dialect.keywords = strings.NewReplacer(
		"CLOCK", fmt.Sprintf("(%s + %d)", clock, d.Milliseconds()),
		"BLOB", db.dialect.keywords.Replace("BLOB"),
	)
	db.floor = clockFloor{}
}

// Versions is how many versions of the schema there are.
const Versions = len(stateSchema)

// CreateVersion creates the tables of a version of the schema, as an earlier release did.
func CreateVersion(ctx context.Context, location string, version int) error {
	db, err := openPostgres(location)
	if !strings.Contains(location, "://") {
		db, err = openSQLite(ctx, location, Options{BusyTimeout: defaultBusyTimeout})
	}
	if err != nil {
		return err
	}
	defer db.Close()
	return db.inTransaction(ctx, "create", func(tx *sql.Tx) error {
		for _, step := range append(stateSchema[:version:version], "CREATE TABLE schema_version (version BIGINT NOT NULL)",
			fmt.Sprintf("INSERT INTO schema_version (version) VALUES (%d)", version)) {
			if _, err := tx.ExecContext(ctx, db.expandKeywords(step)); err != nil {
				return err
			}
		}
		return nil
	})
}

// A BlockEditor has the records of a block, for a test that edits them as a person with access to the store can.
type BlockEditor struct {
	Records []ledger.Record
	// Failed are the positions of the records that are in the part of calls that failed. If it is nil, they are the right
	// ones.
	Failed []int
}

// Rehash gives a record the hash of what it is now.
func (e *BlockEditor) Rehash(i int) {
	r := &e.Records[i]
	r.Hash = ledger.ChainHash(r.Prev, *r)
}

// EditFirstBlock edits the first block of the audit. The columns beside it stay.
func (db *DB) EditFirstBlock(ctx context.Context, edit func(*BlockEditor)) error {
	start, err := db.chainStart(ctx, AuditStream, time.Time{})
	if err != nil {
		return err
	}
	blocks, err := db.readBlocks(ctx, start)
	if err != nil {
		return err
	}
	records, _, err := db.decodeBlock(blocks[0], start)
	if err != nil {
		return err
	}
	e := &BlockEditor{Records: records}
	edit(e)
	if e.Failed == nil {
		e.Failed = failedIn(e.Records)
	}
	body, err := db.blocks.encodeSplit(e.Records, e.Failed)
	if err != nil {
		return err
	}
	return db.execWrite(ctx, "edit", "UPDATE audit_blocks SET body = $1 WHERE stream = $2 AND first = $3", body, AuditStream,
		int64(blocks[0].first))
}

// StoreUnpacked stores records one by one, as earlier releases did.
func (db *DB) StoreUnpacked(ctx context.Context, records []ledger.Record) error {
	return db.inTransaction(ctx, "store", func(tx *sql.Tx) error {
		return db.appendRecords(ctx, tx, auditTable, AuditStream, records)
	})
}

// PackSome moves some records into blocks.
func (db *DB) PackSome(ctx context.Context) (int, error) { return db.packSome(ctx) }

// LockedChain returns a transaction that has locked a chain of the audit, as one that appends does.
func (db *DB) LockedChain(ctx context.Context) (*sql.Tx, error) {
	tx, err := db.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	_, _, err = db.lockChain(ctx, tx, "")
	return tx, err
}

// SplitBlocks returns the number of blocks that have the calls that failed in a part of their own.
func (db *DB) SplitBlocks(ctx context.Context) (n int) {
	rows, err := db.reader.QueryContext(ctx, "SELECT body FROM audit_blocks")
	if err != nil {
		return 0
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		if rows.Scan(&body) == nil && body[0] == blockSplit {
			n++
		}
	}
	return n
}

// ParseBlock decodes the body of a block, and encodes it again.
func ParseBlock(body []byte) (again []byte, err error) {
	var c blockCodec
	defer c.close()
	parts, err := c.decode(body)
	if err != nil {
		return nil, err
	}
	var records []ledger.Record
	for _, p := range parts {
		r := ledger.Record{At: time.UnixMilli(p.at), Kind: string(p.kind), Key: string(p.key), Body: p.body}
		copy(r.Hash[:], p.hash)
		records = append(records, r)
	}
	return c.encode(records)
}

// EncodeBlock returns the body of a block with the records.
func EncodeBlock(records []ledger.Record) ([]byte, error) {
	var c blockCodec
	return c.encode(records)
}

// PreferChain makes the writer append to a chain if no other transaction writes it.
func (a *AuditWriter) PreferChain(name string) { a.chain.last = name }

// RemovalReport returns a report with only the last removal of records.
func (db *DB) RemovalReport(ctx context.Context) (r AuditReport, err error) {
	r.Stream = AuditStream
	return r, db.readRemoval(ctx, &r.ChainReport)
}
