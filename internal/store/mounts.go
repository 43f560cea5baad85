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

// A MountRecord is the saved state of one row of the configuration. If Attempted is after Listed, the last mount has
// ended without a listing, or has not ended.
type MountRecord struct {
	// Row is the hash of the row, Server the name of its server.
	Row    string
	Server drawbridge.ServerID
	// Attempted is when a mount last began, Listed when the last listing was saved. Each is zero if that never
	// happened.
	Attempted, Listed time.Time
	// Listing is the last listing, Status the last status; nil if none was saved or it is damaged.
	Listing *drawbridge.Listing
	Status  *drawbridge.ServerStatus
	// Vetted was last saved by SaveVetted; nil if nothing was.
	Vetted []byte
	// Owner is the id of the process that saved the status; 0 where none did.
	Owner int
}

// RecordAttempt records that a mount of a row begins. It is called before anything is started, so that the next
// process knows about a mount that crashed this one.
func (db *DB) RecordAttempt(ctx context.Context, row string, id drawbridge.ServerID) error {
	// After a listing of the same millisecond, or of a clock that was ahead, it is still after.
	return db.execWrite(ctx, "record an attempt", `INSERT INTO mounts (row, server, attempted) VALUES ($1, $2, CLOCK)
		ON CONFLICT (row) DO UPDATE SET server = excluded.server, attempted =
		CASE WHEN mounts.listed >= excluded.attempted THEN mounts.listed + 1 ELSE excluded.attempted END`, row, string(id))
}

// SaveListing stores a listing as the last of its row. The row's last attempt thereby counts as successful.
func (db *DB) SaveListing(ctx context.Context, l drawbridge.Listing) error {
	const step = "save a listing"
	text, err := encodeListing(l)
	if err != nil {
		return db.newFault(step, drawbridge.InvalidInput, err)
	}
	return db.execWrite(ctx, step, `INSERT INTO mounts (row, server, listing, listed) VALUES ($1, $2, $3, CLOCK)
		ON CONFLICT (row) DO UPDATE SET server = excluded.server, listing = excluded.listing, listed =
		CASE WHEN mounts.attempted > excluded.listed THEN mounts.attempted ELSE excluded.listed END`, l.ConfigHash, string(l.Server), text)
}

// SaveStatus stores a status as the last of a row, with this process as its owner.
func (db *DB) SaveStatus(ctx context.Context, row string, s drawbridge.ServerStatus) error {
	const step = "save a status"
	text, err := json.Marshal(s)
	if err != nil {
		return db.newFault(step, drawbridge.InvalidInput, err)
	}
	return db.execWrite(ctx, step, `INSERT INTO mounts (row, server, status, owner) VALUES ($1, $2, $3, $4)
		ON CONFLICT (row) DO UPDATE SET server = excluded.server, status = excluded.status, owner = excluded.owner`,
		row, string(s.Server), text, os.Getpid())
}

// execWrite executes one statement.
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

// MountsOf returns the saved state of these rows, by row. It reads no others, of which there may be many.
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

// Mounts returns the saved state of all rows, by row, including rows that no configuration has any more.
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
		// Damaged data count as not saved: the next mount saves them again.
		m.Listing, _ = decodeListing(listing)
		if json.Unmarshal(status, &m.Status) != nil {
			m.Status = nil
		}
		mounts[m.Row] = m
	}
	return rows.Err()
}
