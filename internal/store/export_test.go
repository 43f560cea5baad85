package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
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
