package store_test

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
)

// TestAuditNamesWhatWasTamperedWith does to the tables what nobody may.
func TestAuditNamesWhatWasTamperedWith(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		key := newKey(t)
		for _, tt := range []struct {
			name, statement, want string
			args                  []any
			edit                  func(e *store.BlockEditor)
		}{
			{name: "a record edited", want: "record 7 of audit: edited",
				edit: func(e *store.BlockEditor) { e.Records[6].Body = []byte(`{"id":"3","kind":"call"}`) }},
			{name: "a record of another call", want: "record 7 of audit: edited",
				edit: func(e *store.BlockEditor) { e.Records[6].Key = "x" }},
			{name: "a record edited with its check", want: "record 8 of audit: edited",
				edit: func(e *store.BlockEditor) { e.Records[6].Key = "x"; e.Rehash(6) }},
			{name: "a record stored at another time", want: "record 9 of audit: edited",
				edit: func(e *store.BlockEditor) { e.Records[8].At = e.Records[8].At.Add(time.Second) }},
			{name: "a record taken out of its block", want: "record 1 of audit: torn",
				edit: func(e *store.BlockEditor) { e.Records = append(e.Records[:6:6], e.Records[7:]...) }},
			{name: "the last record edited", want: "record 300 of audit: edited",
				edit: func(e *store.BlockEditor) { e.Records[299].Key = "x"; e.Rehash(299) }},
			{name: "a byte of a block", want: "record 1 of audit: torn",
				statement: "UPDATE audit_blocks SET body = $1 WHERE first = 1", args: []any{[]byte("\x02nothing")}},
			{name: "a block taken out", want: "record 301 of audit: missing", statement: "DELETE FROM audit_blocks WHERE first = 301"},
			{name: "a hash torn", want: "record 1 of audit: torn", statement: "UPDATE audit_blocks SET hash = $1 WHERE first = 1",
				args: []any{[]byte{1}}},
			{name: "the end cut off", want: "record 601 of audit: missing", statement: "DELETE FROM audit_blocks WHERE first > 600"},
			{name: "the beginning cut off", want: "record 1 of audit: missing", statement: "DELETE FROM audit_blocks WHERE first = 1"},
			{name: "a block that is not searched for failures", want: "records 1 to 300 of audit: edited",
				statement: "UPDATE audit_blocks SET failed = failed + 1"},
			{name: "a block that is not searched for a server", want: "records 1 to 300 of audit: edited",
				statement: "UPDATE audit_blocks SET servers = $1 WHERE first = 1", args: []any{[]byte("[]")}},
			{name: "a call that is not found", want: "records 1 to 300 of audit: edited",
				statement: "DELETE FROM audit_late WHERE first = 1"},
			{name: "other records are searched for failures", want: "records 1 to 300 of audit: edited",
				edit: func(e *store.BlockEditor) { e.Failed = []int{3, 299} }},
			{name: "a signature changed", want: "checkpoint at record 300: its signature is not its signer's",
				statement: "UPDATE checkpoints SET signature = $1", args: []any{make([]byte, 64)}},
			{name: "a checkpoint of another chain", want: "checkpoint at record 300: its signature is not its signer's",
				statement: "UPDATE checkpoints SET hash = $1", args: []any{make([]byte, 32)}},
		} {
			db, place := signedCopy(t, location, key)
			if tt.edit != nil {
				check(t, db.EditFirstBlock(t.Context(), tt.edit))
			} else {
				raw(t, place)(tt.statement, tt.args...)
			}
			if _, err := db.VerifyAudit(t.Context(), key.Public().(ed25519.PublicKey)); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		}
	})
}

// signedCopy makes a store like that at a location, which it makes first: an audit of three times 150 calls, signed. A
// database has no copies; there it is made anew.
func signedCopy(t *testing.T, location string, key ed25519.PrivateKey) (db *store.DB, place string) {
	t.Helper()
	if strings.HasPrefix(location, "postgres") {
		place = storetest.PostgresSchema(t)
		for range 2 {
			signed(t, place, key, 150, store.AuditOptions{})
		}
		return signed(t, place, key, 150, store.AuditOptions{}), place
	}
	if _, err := os.Stat(location); errors.Is(err, os.ErrNotExist) {
		for range 3 {
			if err := signed(t, location, key, 150, store.AuditOptions{}).Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := os.ReadFile(location)
	if err != nil {
		t.Fatal(err)
	}
	place = filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(place, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, place), place
}
