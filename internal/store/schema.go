package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
)

// stateSchema contains the migration steps from an empty store to the current tables. The version of a store is the number
// of steps that were applied to it. A released step is never edited: every later change of the tables is an
// additional step.
var stateSchema = [...]string{
	`CREATE TABLE heads (
		stream TEXT NOT NULL PRIMARY KEY,
		seq    BIGINT NOT NULL, -- of the last record
		hash   BLOB NOT NULL    -- of the last record
	);
	CREATE TABLE ledger (
		stream TEXT NOT NULL,
		seq    BIGINT NOT NULL, -- from 1, no gaps
		at     BIGINT NOT NULL, -- milliseconds since 1970
		kind   TEXT NOT NULL,
		key    TEXT NOT NULL,
		body   BLOB NOT NULL,
		hash   BLOB NOT NULL,   -- of this record and the hash before it
		PRIMARY KEY (stream, seq)
	);
	CREATE TABLE blobs (
		name  TEXT NOT NULL PRIMARY KEY,
		value BLOB NOT NULL
	);
	CREATE TABLE mounts (
		row       TEXT NOT NULL PRIMARY KEY, -- the hash of the configuration
		server    TEXT NOT NULL,
		attempted BIGINT NOT NULL DEFAULT 0, -- milliseconds since 1970; 0 is never
		listed    BIGINT NOT NULL DEFAULT 0,
		listing   BLOB,
		status    BLOB,
		owner     BIGINT NOT NULL DEFAULT 0  -- the process that saved the status
	);`,
	`CREATE TABLE approvals (
		path     TEXT NOT NULL,   -- the file that the row stands in
		server   TEXT NOT NULL,   -- its name there
		hash     TEXT NOT NULL,   -- of the row when the person decided
		facts    BLOB NOT NULL,   -- what they were shown of it
		approved BIGINT NOT NULL, -- 0 is rejected
		at       BIGINT NOT NULL, -- milliseconds since 1970
		PRIMARY KEY (path, server)
	);`,
	`CREATE TABLE clients (
		name    TEXT NOT NULL PRIMARY KEY,
		token   BLOB NOT NULL UNIQUE,     -- its SHA-256
		scopes  BLOB NOT NULL,
		created BIGINT NOT NULL,          -- milliseconds since 1970
		expires BIGINT NOT NULL,          -- 0 is never
		used    BIGINT NOT NULL DEFAULT 0 -- the day of the last use
	);`,
	`ALTER TABLE mounts ADD COLUMN vetted BLOB; -- what may be shown of the listing
	CREATE TABLE first_tools (
		row    TEXT NOT NULL PRIMARY KEY, -- the hash of the configuration
		server TEXT NOT NULL,
		tools  BLOB NOT NULL,             -- a listing with nothing else
		at     BIGINT NOT NULL            -- milliseconds since 1970
	);`,
	`CREATE TABLE pin_lists (
		origin  TEXT NOT NULL,    -- the file that the server's row stands in
		server  TEXT NOT NULL,    -- its name there
		settled BLOB NOT NULL,    -- names the list that was settled last
		PRIMARY KEY (origin, server)
	);
	CREATE TABLE pins (
		origin     TEXT NOT NULL,
		server     TEXT NOT NULL,
		tool       TEXT NOT NULL,
		hash       TEXT NOT NULL,
		definition BLOB NOT NULL,
		how        TEXT NOT NULL,
		at         BIGINT NOT NULL, -- milliseconds since 1970
		offer_hash TEXT NOT NULL,   -- empty where there is no offer
		offer      BLOB NOT NULL,
		offer_at   BIGINT NOT NULL,
		rejected   BIGINT NOT NULL,
		PRIMARY KEY (origin, server, tool)
	);`,
	`CREATE TABLE audit (
		stream TEXT NOT NULL,
		seq    BIGINT NOT NULL, -- no gaps
		at     BIGINT NOT NULL, -- when the store took it in, milliseconds since 1970
		kind   TEXT NOT NULL,
		key    TEXT NOT NULL,   -- the call's id
		body   BLOB NOT NULL,
		hash   BLOB NOT NULL,   -- of this record and the hash before it
		PRIMARY KEY (stream, seq)
	);
	CREATE INDEX audit_key ON audit (key);
	CREATE INDEX audit_at ON audit (at);
	CREATE TABLE spools (
		name  TEXT NOT NULL PRIMARY KEY, -- of a file
		taken BIGINT NOT NULL            -- how many bytes of it the audit has
	);
	CREATE TABLE checkpoints (
		stream    TEXT NOT NULL,
		seq       BIGINT NOT NULL,
		hash      BLOB NOT NULL,
		at        BIGINT NOT NULL, -- milliseconds since 1970
		signer    BLOB NOT NULL,   -- the public key
		signature BLOB NOT NULL,
		PRIMARY KEY (stream, seq)
	);
	CREATE TABLE cuts (
		stream TEXT NOT NULL PRIMARY KEY,
		seq    BIGINT NOT NULL, -- of the last record that was taken out as too old
		hash   BLOB NOT NULL
	);`,
	`CREATE TABLE accounts (
		kind TEXT NOT NULL, -- what is counted
		name TEXT NOT NULL, -- of whom
		body BLOB NOT NULL, -- as it is after the last change; empty before the first
		PRIMARY KEY (kind, name)
	);`,
	`CREATE TABLE asks (
		id        TEXT NOT NULL PRIMARY KEY,
		principal TEXT NOT NULL,   -- of the caller
		session   TEXT NOT NULL,   -- a hash; empty where there is none
		call_hash TEXT NOT NULL,   -- of the caller's call with its arguments
		card_hash TEXT NOT NULL,   -- of the caller's calls of the card
		shown     BLOB NOT NULL,   -- what a person is shown
		created   BIGINT NOT NULL, -- milliseconds since 1970
		ends      BIGINT NOT NULL, -- when it is too late for an answer
		held      BIGINT NOT NULL, -- until when its process has said to wait
		answer    TEXT NOT NULL    -- empty, allow or deny
	);
	CREATE TABLE grants (
		id        TEXT NOT NULL PRIMARY KEY, -- of the ask
		principal TEXT NOT NULL,
		session   TEXT NOT NULL,   -- the only one; empty is any
		subject   TEXT NOT NULL,   -- a call_hash or a card_hash
		for_card  BIGINT NOT NULL, -- 1 is a card_hash
		shown     BLOB NOT NULL,
		created   BIGINT NOT NULL,
		ends      BIGINT NOT NULL, -- 0 is never
		uses      BIGINT NOT NULL
	);`,
	`CREATE TABLE vector_models (
		model     TEXT NOT NULL PRIMARY KEY,
		dimension BIGINT NOT NULL
	);
	CREATE TABLE vectors (
		model  TEXT NOT NULL,
		key    BLOB NOT NULL, -- the SHA-256 of the text
		vector BLOB NOT NULL, -- numbers of 4 bytes, the least significant first; its length is 1
		PRIMARY KEY (model, key)
	);`,
	`ALTER TABLE asks ADD COLUMN said_by TEXT NOT NULL DEFAULT '';   -- who answered, and where
	ALTER TABLE grants ADD COLUMN said_by TEXT NOT NULL DEFAULT '';`,
	`CREATE TABLE held_results (
		id        TEXT NOT NULL PRIMARY KEY,
		at        BIGINT NOT NULL, -- milliseconds since 1970
		principal TEXT NOT NULL,   -- of the caller
		server    TEXT NOT NULL,
		card      TEXT NOT NULL,   -- as the caller knows it
		method    TEXT NOT NULL,
		rules     BLOB NOT NULL,   -- what the result met, a list
		size      BIGINT NOT NULL, -- of the result
		result    BLOB NOT NULL
	);`,
	`CREATE TABLE prunings (
		stream  TEXT NOT NULL PRIMARY KEY,
		at      BIGINT NOT NULL,           -- the time of the last pruning, milliseconds since 1970
		jump_at BIGINT NOT NULL DEFAULT 0, -- a later time that is not confirmed; 0 is none
		jump_by TEXT NOT NULL DEFAULT ''   -- the process that found it
	);
	INSERT INTO prunings (stream, at) SELECT stream, MAX(at) FROM audit GROUP BY stream;`,
	`CREATE TABLE store_clock (
		highest BIGINT NOT NULL -- the highest time that this store's clock has shown, milliseconds since 1970
	);
	INSERT INTO store_clock (highest) VALUES (CLOCK);
	ALTER TABLE clients ADD COLUMN ended BIGINT NOT NULL DEFAULT 0; -- 1 after the end of the token was seen
	ALTER TABLE cuts ADD COLUMN at BIGINT NOT NULL DEFAULT 0;       -- the time of the last removal; 0 is not known
	ALTER TABLE cuts ADD COLUMN reason TEXT NOT NULL DEFAULT '';    -- age or number; empty is not known
	CREATE TABLE row_approvals (
		path      TEXT NOT NULL,   -- the file that the row stands in
		server    TEXT NOT NULL,   -- its name there
		principal TEXT NOT NULL,   -- who decided; empty is not known, in rows of earlier releases
		machine   TEXT NOT NULL,   -- where they did
		hash      TEXT NOT NULL,   -- of the row when the person decided
		facts     BLOB NOT NULL,   -- what they were shown of it
		approved  BIGINT NOT NULL, -- 0 is rejected
		at        BIGINT NOT NULL, -- milliseconds since 1970
		PRIMARY KEY (path, server, principal, machine)
	);
	INSERT INTO row_approvals (path, server, principal, machine, hash, facts, approved, at)
		SELECT path, server, '', '', hash, facts, approved, at FROM approvals;
	DROP TABLE approvals;`,
	`CREATE TABLE script_runs (
		id        TEXT NOT NULL PRIMARY KEY,
		owner     TEXT NOT NULL,   -- a hash of the caller
		call_hash TEXT NOT NULL,   -- of the arguments of run_python
		holder    TEXT NOT NULL,   -- the process that runs it
		request   BLOB NOT NULL,   -- what it called; encrypted
		created   BIGINT NOT NULL, -- milliseconds since 1970
		held      BIGINT NOT NULL, -- until when its process has said to run it
		ends      BIGINT NOT NULL  -- until when it can be repeated
	);
	CREATE TABLE script_run_entries (
		run   TEXT NOT NULL,
		seq   BIGINT NOT NULL, -- from 0, no gaps
		entry BLOB NOT NULL,   -- encrypted
		PRIMARY KEY (run, seq)
	);`,
	`ALTER TABLE grants ADD COLUMN max_uses BIGINT NOT NULL DEFAULT 0; -- 0 for none
	ALTER TABLE grants ADD COLUMN pattern TEXT NOT NULL DEFAULT '';   -- of the arguments, if there is a maximum`,
	`CREATE TABLE learned_outputs (
		row        TEXT NOT NULL,   -- the hash of the configuration
		tool       TEXT NOT NULL,   -- the server's own name
		server     TEXT NOT NULL,
		definition TEXT NOT NULL,   -- the hash of the tool's definition
		version    BIGINT NOT NULL, -- from 1; increases with each other definition
		schema     BLOB NOT NULL,   -- types and names, no values
		results    BIGINT NOT NULL, -- that it was learned from
		at         BIGINT NOT NULL, -- the last change, milliseconds since 1970
		PRIMARY KEY (row, tool)
	);
	CREATE INDEX learned_outputs_at ON learned_outputs (at);`,
	// the origin of what a client writes to the workspace
	`ALTER TABLE clients ADD COLUMN origin TEXT NOT NULL DEFAULT 'agent-produced';`,
	// The records of the audit are in blocks. The table audit has records that are not in blocks yet.
	`CREATE TABLE audit_blocks (
		stream  TEXT NOT NULL,   -- the hash chain
		first   BIGINT NOT NULL, -- the number of the first record
		last    BIGINT NOT NULL, -- the number of the last record
		at      BIGINT NOT NULL, -- when the store took the last record in, milliseconds since 1970
		size    BIGINT NOT NULL, -- of the body
		failed  BIGINT NOT NULL, -- calls that failed, or whose outcome is not in the block
		low     BLOB NOT NULL,   -- the lowest ID of a call that is not in audit_late
		high    BLOB NOT NULL,   -- the highest ID of such a call
		servers BLOB NOT NULL,   -- JSON: a list, or null
		callers BLOB NOT NULL,   -- JSON: a list of principals and clients, or null
		hash    BLOB NOT NULL,   -- of the last record
		body    BLOB NOT NULL,   -- the records
		PRIMARY KEY (stream, first)
	);
	CREATE INDEX audit_blocks_at ON audit_blocks (at);
	CREATE INDEX audit_blocks_ids ON audit_blocks (low, high);
	CREATE INDEX audit_blocks_failed ON audit_blocks (at) WHERE failed > 0;
	CREATE TABLE audit_late (
		stream TEXT NOT NULL,
		first  BIGINT NOT NULL, -- of the block
		key    TEXT NOT NULL,   -- of a record in the block whose key is not between low and high
		PRIMARY KEY (stream, first, key)
	);
	CREATE INDEX audit_late_key ON audit_late (key);
	ALTER TABLE heads ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0; -- the size of all blocks that were appended
	ALTER TABLE cuts ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;  -- the size of the removed blocks, less that of packed records`,
	// The labels of runs and of files that they have written, and the values that a person has endorsed.
	`CREATE TABLE flow_runs (
		run             TEXT NOT NULL PRIMARY KEY, -- a hash of its key
		integrity       BIGINT NOT NULL,
		confidentiality BIGINT NOT NULL,
		origins         BLOB NOT NULL,   -- JSON: the sources that lowered the label
		at              BIGINT NOT NULL  -- the last change, milliseconds since 1970
	);
	CREATE INDEX flow_runs_at ON flow_runs (at);
	CREATE TABLE flow_files (
		path            TEXT NOT NULL PRIMARY KEY,
		integrity       BIGINT NOT NULL,
		confidentiality BIGINT NOT NULL,
		origin          BLOB NOT NULL,   -- JSON: the source that explains the label
		at              BIGINT NOT NULL
	);
	CREATE TABLE endorsements (
		id        TEXT NOT NULL,
		principal TEXT NOT NULL,
		server    TEXT NOT NULL,   -- with tool and place: who may use the value; empty for all
		tool      TEXT NOT NULL,
		place     TEXT NOT NULL,   -- in the arguments
		sends     BIGINT NOT NULL, -- 1 if the value may carry private text outside
		hash      TEXT NOT NULL,   -- the SHA-256 of the value
		shown     TEXT NOT NULL,   -- the value, redacted
		origin    TEXT NOT NULL,
		label     TEXT NOT NULL,
		said_by   TEXT NOT NULL,
		created   BIGINT NOT NULL, -- milliseconds since 1970
		ends      BIGINT NOT NULL,
		PRIMARY KEY (principal, server, tool, place, sends, hash)
	);`,
}

// migrate applies the missing steps of db.schema in one transaction. If no step is missing, migrate does not write. It
// returns an error if a newer program has written the store.
func (db *DB) migrate(ctx context.Context) error {
	const step = "open"
	version, err := db.schemaVersion(ctx, db.writer)
	switch {
	case err != nil && !db.dialect.isMissingTable(err):
		return db.fault(step, err)
	case err == nil && version == len(db.schema):
		return nil
	case version > len(db.schema):
		return db.tooNewFault(version)
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		if lock := db.dialect.lock; lock != "" {
			if _, err := tx.ExecContext(ctx, lock); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx,
			"CREATE TABLE IF NOT EXISTS "+db.versionTable+" (version BIGINT NOT NULL)"); err != nil {
			return err
		}
		// Another process may have migrated the tables meanwhile.
		version, err := db.schemaVersion(ctx, tx)
		switch {
		case err != nil:
			return err
		case version > len(db.schema):
			return db.tooNewFault(version)
		}
		for _, step := range db.schema[version:] {
			if _, err := tx.ExecContext(ctx, db.expandKeywords(step)); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+db.versionTable); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO "+db.versionTable+" (version) VALUES ($1)", len(db.schema))
		return err
	})
}

// stateVersions is the table with the version of stateSchema.
const stateVersions = "schema_version"

// schemaVersion returns the number of migration steps that were applied to the store, or 0 if the table is empty.
func (db *DB) schemaVersion(ctx context.Context, from rowQuerier) (version int, err error) {
	err = from.QueryRowContext(ctx, "SELECT version FROM "+db.versionTable).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

// A rowQuerier is implemented by *sql.DB and *sql.Tx.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (db *DB) tooNewFault(version int) error {
	f := db.newFault("open", drawbridge.InvalidInput,
		fmt.Errorf("a newer Drawbridge wrote it: its schema is %d, and this one knows %d", version, len(db.schema)))
	f.Next = "update Drawbridge, restore a backup of the earlier version, or name another store"
	return f
}
