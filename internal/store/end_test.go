package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
)

// TestAnEndInTheMidstOfAWrite: a write that its context cut off says so, and not that somebody else ended its
// transaction.
func TestAnEndInTheMidstOfAWrite(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, result := range map[string]func(error) error{
		"at work":       func(err error) error { return err },
		"at its commit": func(error) error { return nil },
	} {
		ctx, end := context.WithCancel(t.Context())
		err := db.inTransaction(ctx, "write", func(tx *sql.Tx) error {
			end()
			for {
				if _, err := tx.ExecContext(context.WithoutCancel(ctx), "SELECT 1"); errors.Is(err, sql.ErrTxDone) {
					return result(err)
				}
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
