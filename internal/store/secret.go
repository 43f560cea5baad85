package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
)

// identitySize is the number of random bytes of a store's identity.
const identitySize = 16

// Identity returns the store's identity in hexadecimal. It is random, and created at the first call. It does not
// depend on the path or URL with which the store is opened. It is not secret.
func (db *DB) Identity(ctx context.Context) (string, error) {
	if known := db.identity.Load(); known != nil {
		return *known, nil
	}
	random, err := db.SharedSecret(ctx, "store-identity", identitySize)
	if err != nil {
		return "", err
	}
	id := hex.EncodeToString(random)
	db.identity.Store(&id)
	return id, nil
}

// SharedSecret returns size random bytes for a name. The first call for a name creates the bytes; later calls return
// the same bytes in every process that uses this store. All calls for a name must pass the same size; otherwise the
// fault has code InvalidInput.
func (db *DB) SharedSecret(ctx context.Context, name string, size int) ([]byte, error) {
	step := "read the secret " + name
	wrong := func(have int) error {
		return db.newFault(step, drawbridge.InvalidInput, fmt.Errorf("it has %d bytes, not %d", have, size))
	}
	if size <= 0 {
		return nil, wrong(0)
	}
	const read = "SELECT value FROM blobs WHERE name = $1"
	var value []byte
	err := db.reader.QueryRowContext(ctx, read, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = db.inTransaction(ctx, step, func(tx *sql.Tx) error {
			fresh := make([]byte, size)
			rand.Read(fresh) // never fails: see its documentation
			_, err := tx.ExecContext(ctx,
				"INSERT INTO blobs (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, fresh)
			if err != nil {
				return err
			}
			// Another process may have inserted a value meanwhile.
			return tx.QueryRowContext(ctx, read, name).Scan(&value)
		})
	}
	if err != nil {
		return nil, db.fault(step, err)
	}
	if len(value) != size {
		return nil, wrong(len(value))
	}
	return value, nil
}
