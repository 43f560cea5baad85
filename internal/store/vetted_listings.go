package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// SaveVetted saves the results of vetting, which is the check of a server's listing. vetted contains one encoded
// result for each row. Rows that were never mounted are skipped. All results are saved in one transaction. A result
// must identify the listing that was vetted, because SaveListing does not delete the result of the previous listing.
func (db *DB) SaveVetted(ctx context.Context, vetted map[string][]byte) error {
	return db.inCounterTransaction(ctx, "save vetted listings", func(tx *sql.Tx) error {
		for _, row := range slices.Sorted(maps.Keys(vetted)) {
			if _, err := tx.ExecContext(ctx, db.expandKeywords("UPDATE mounts SET vetted = $1 WHERE row = $2"),
				vetted[row], row); err != nil {
				return err
			}
		}
		return nil
	})
}

// FirstTools returns the tools that the first call for a row passed to it, byte for byte. If this is the first call,
// FirstTools saves and returns tools. So all processes get the same tools for a row, even if the server lists other
// tools later.
func (db *DB) FirstTools(ctx context.Context, row string, server drawbridge.ServerID, tools []json.RawMessage) (
	[]json.RawMessage, error) {
	const step = "keep the first list of tools"
	text, err := encodeListing(drawbridge.Listing{Server: server, ConfigHash: row, Tools: tools})
	if err != nil {
		return nil, db.newFault(step, drawbridge.InvalidInput, err)
	}
	var kept []byte
	err = db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO first_tools (row, server, tools, at) VALUES ($1, $2, $3, CLOCK)
			ON CONFLICT (row) DO NOTHING`), row, string(server), text)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, db.expandKeywords("SELECT tools FROM first_tools WHERE row = $1"),
			row).Scan(&kept)
	})
	if err != nil {
		return nil, err
	}
	first, err := decodeListing(kept)
	if err != nil {
		return nil, db.fault(step, err)
	}
	return first.Tools, nil
}

// ForgetFirstTools deletes the lists that FirstTools saved for a server, in all rows, and reports whether there were
// any.
func (db *DB) ForgetFirstTools(ctx context.Context, server drawbridge.ServerID) (found bool, err error) {
	err = db.inTransaction(ctx, "forget the first list of tools", func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, db.expandKeywords("DELETE FROM first_tools WHERE server = $1"), string(server))
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		found = n > 0
		return err
	})
	return found, err
}
