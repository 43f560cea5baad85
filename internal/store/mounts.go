package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A MountRecord is the saved state of the server in one configuration row. To mount a server means to connect to it
// and to read its listing. If Attempted is after Listed, the last mount ended without a listing, or is still running.
type MountRecord struct {
	// Row is the hash of the configuration row, and Server the server's name in that row.
	Row    string
	Server drawbridge.ServerID
	// Attempted is the time at which the last mount began, and Listed the time at which the last listing was saved.
	// Each is zero if it never happened.
	Attempted, Listed time.Time
	// Listing is the last listing, and Status the last status. Each is nil if it was never saved or is damaged.
	Listing *drawbridge.Listing
	Status  *drawbridge.ServerStatus
	// Vetted is the value that SaveVetted last stored; nil if there is none.
	Vetted []byte
	// Owner is the ID of the process that saved the status; 0 if no process has saved one.
	Owner int
}

// RecordAttempt stores the time at which a mount of a row begins. It is called before the server is started. If the
// mount then crashes this process, the next process finds an attempt without a listing.
func (db *DB) RecordAttempt(ctx context.Context, row string, id drawbridge.ServerID) error {
	// The stored time must be after Listed, even if both are in the same millisecond or the clock was ahead.
	return db.recordMount(ctx, "record an attempt", `INSERT INTO mounts (row, server, attempted) VALUES ($1, $2, CLOCK)
		ON CONFLICT (row) DO UPDATE SET server = excluded.server, attempted =
		CASE WHEN mounts.listed >= excluded.attempted THEN mounts.listed + 1 ELSE excluded.attempted END`, row, string(id))
}

// SaveListing stores the last listing of its row. It sets Listed to a time that is not before Attempted, so the last
// mount counts as successful.
func (db *DB) SaveListing(ctx context.Context, l drawbridge.Listing) error {
	const step = "save a listing"
	text, err := encodeListing(l)
	if err != nil {
		return db.newFault(step, drawbridge.InvalidInput, err)
	}
	return db.recordMount(ctx, step, `INSERT INTO mounts (row, server, listing, listed) VALUES ($1, $2, $3, CLOCK)
		ON CONFLICT (row) DO UPDATE SET server = excluded.server, listing = excluded.listing, listed =
		CASE WHEN mounts.attempted > excluded.listed THEN mounts.attempted ELSE excluded.listed END`, l.ConfigHash, string(l.Server), text)
}

// SaveStatus stores the last status of a row, with this process as its owner.
func (db *DB) SaveStatus(ctx context.Context, row string, s drawbridge.ServerStatus) error {
	const step = "save a status"
	text, err := json.Marshal(s)
	if err != nil {
		return db.newFault(step, drawbridge.InvalidInput, err)
	}
	return db.recordMount(ctx, step, `INSERT INTO mounts (row, server, status, owner) VALUES ($1, $2, $3, $4)
		ON CONFLICT (row) DO UPDATE SET server = excluded.server, status = excluded.status, owner = excluded.owner`,
		row, string(s.Server), text, os.Getpid())
}

// recordMount executes one statement that records a mount. It does not wait for the disk, because the next start mounts
// the server again.
func (db *DB) recordMount(ctx context.Context, step, statement string, args ...any) error {
	return db.inCounterTransaction(ctx, step, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, db.expandKeywords(statement), args...)
		return err
	})
}

// execWrite executes one statement in a transaction.
func (db *DB) execWrite(ctx context.Context, step, statement string, args ...any) error {
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, db.expandKeywords(statement), args...)
		return err
	})
}

const (
	selectMounts   = "SELECT row, server, attempted, listed, listing, status, vetted, owner FROM mounts"
	readMountsStep = "read the mounts"
)

// MountsOf returns the saved states of the given rows, by row. It reads only these rows, because the table may
// contain many others.
func (db *DB) MountsOf(ctx context.Context, rows []string) (map[string]MountRecord, error) {
	mounts := map[string]MountRecord{}
	for part := range slices.Chunk(rows, vectorReadBatch) {
		args := make([]any, len(part))
		for i, row := range part {
			args[i] = row
		}
		var b strings.Builder
		b.WriteString(selectMounts + " WHERE row IN (")
		db.dialect.writeParameters(&b, 1, len(part))
		b.WriteString(")")
		if err := db.readMounts(ctx, mounts, b.String(), args...); err != nil {
			return nil, db.fault(readMountsStep, err)
		}
	}
	return mounts, nil
}

// Mounts returns the saved states of all rows, by row, including rows that are no longer in any configuration.
func (db *DB) Mounts(ctx context.Context) (map[string]MountRecord, error) {
	mounts := map[string]MountRecord{}
	if err := db.readMounts(ctx, mounts, selectMounts); err != nil {
		return nil, db.fault(readMountsStep, err)
	}
	return mounts, nil
}

func (db *DB) readMounts(ctx context.Context, mounts map[string]MountRecord, query string, args ...any) error {
	rows, err := db.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var m MountRecord
		var attempted, listed int64
		var listing, status []byte
		if err := rows.Scan(&m.Row, &m.Server, &attempted, &listed, &listing, &status, &m.Vetted,
			&m.Owner); err != nil {
			return err
		}
		m.Attempted, m.Listed = fromMillis(attempted), fromMillis(listed)
		// Treat damaged data as missing: the next mount saves it again.
		m.Listing, _ = decodeListing(listing)
		if json.Unmarshal(status, &m.Status) != nil {
			m.Status = nil
		}
		mounts[m.Row] = m
	}
	return rows.Err()
}
