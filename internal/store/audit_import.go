package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// errAlreadyImported is the error of importRecords if another process has already imported the same part of a spool
// file.
var errAlreadyImported = errors.New("another process has imported it")

// importedBytes returns the import position of a spool file: the number of its bytes whose records are already in the
// audit.
func (db *DB) importedBytes(ctx context.Context, name string) (n int64, err error) {
	err = db.reader.QueryRowContext(ctx, "SELECT taken FROM spools WHERE name = $1", name).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, db.fault("read how much of a spool is taken in", err)
	}
	return n, nil
}

// importRecords appends records to the audit. The records are the content of the bytes from:to of a spool file. In
// the same transaction, it changes the import position of the file from from to to. If the stored position is not
// from, it appends nothing and returns errAlreadyImported. w and after are those of appendAudit.
func (db *DB) importRecords(ctx context.Context, w *chainWriter, name string, from, to int64, records []ledger.Record, after *string) error {
	return db.inTransaction(ctx, "append to the audit", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx,
			"INSERT INTO spools (name, taken) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING", name); err != nil {
			return err
		}
		moved, err := tx.ExecContext(ctx, "UPDATE spools SET taken = $1 WHERE name = $2 AND taken = $3", to, name, from)
		if err != nil {
			return err
		}
		if n, err := moved.RowsAffected(); err != nil || n != 1 {
			return cmp.Or(err, errAlreadyImported)
		}
		return db.appendAudit(ctx, tx, w, records, after)
	})
}
