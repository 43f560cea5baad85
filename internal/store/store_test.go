package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[0] == childName {
		os.Exit(child(os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[0] == spenderName {
		os.Exit(spender(os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[0] == pinsChildName {
		os.Exit(pinsChild(os.Args[1]))
	}
	if len(os.Args) > 1 && os.Args[0] == auditName {
		os.Exit(auditChild(os.Args[1:]))
	}
	if len(os.Args) > 2 && os.Args[0] == granterName {
		os.Exit(granter(os.Args[1], os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[0] == fullName {
		os.Exit(full(os.Args[1:]))
	}
	if len(os.Args) > 3 && os.Args[0] == workspaceWriterName {
		os.Exit(workspaceWriter(os.Args[1], os.Args[2], os.Args[3] != ""))
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, location string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), location, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSQLite(t *testing.T) {
	storetest.RunStoreTests(t, func(t *testing.T) storetest.OpenStore {
		// Characters that mean something in a URI mean nothing in a path.
		path := filepath.Join(t.TempDir(), "a dir", "50%41?x=1&_query_only=1#é.db")
		return func() storetest.TestedStore { return open(t, path) }
	})
}

func TestMemory(t *testing.T) {
	storetest.RunStoreTests(t, func(t *testing.T) storetest.OpenStore {
		db := open(t, ":memory:") // there is one of it
		return func() storetest.TestedStore { return db }
	})
}

func TestPostgres(t *testing.T) {
	storetest.RunStoreTests(t, func(t *testing.T) storetest.OpenStore {
		location := storetest.PostgresSchema(t)
		return func() storetest.TestedStore { return open(t, location) }
	})
}

// onEach runs a test on a file, and on Postgres where there is one.
func onEach(t *testing.T, test func(t *testing.T, location string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "store.db")) })
	t.Run("Postgres", func(t *testing.T) { test(t, storetest.PostgresSchema(t)) })
}

// read runs a query with one row past the store.
func read(t *testing.T, location string) func(query string, to ...any) {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(location, "postgres") {
		driver = "pgx"
	}
	db, err := sql.Open(driver, location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return func(query string, to ...any) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), query).Scan(to...); err != nil {
			t.Fatal(err)
		}
	}
}

// raw opens the database as anybody can who has the rights, without the store.
func raw(t *testing.T, location string) func(statement string, args ...any) {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(location, "postgres") {
		driver = "pgx"
	}
	db, err := sql.Open(driver, location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return func(statement string, args ...any) {
		t.Helper()
		result, err := db.ExecContext(t.Context(), statement, args...)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 && !strings.HasPrefix(statement, "CREATE") {
			t.Fatalf("%s: %d rows, %v", statement, n, err)
		}
	}
}

// fill appends n entries as one batch.
func fill(t testing.TB, db *store.DB, stream string, n int) {
	t.Helper()
	var entries []ledger.Entry
	for i := range n {
		entries = append(entries, storetest.NewEnrolment("fs", fmt.Sprintf("tool_%d", i)))
	}
	if _, err := db.Append(t.Context(), stream, entries); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsNamed changes the database behind the store's back.
func TestDamageIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		postgres := strings.HasPrefix(location, "postgres")
		for i, tt := range []struct {
			name      string
			statement string
			want      ledger.ChainError
		}{
			{"a bit of a body", "UPDATE ledger SET body = $2 WHERE stream = $1 AND seq = 3", ledger.ChainError{Seq: 3,
				Damage: ledger.DamageEdited}},
			{"a key", "UPDATE ledger SET key = 'bk_other' WHERE stream = $1 AND seq = 3", ledger.ChainError{Seq: 3,
				Damage: ledger.DamageEdited}},
			{"a time", "UPDATE ledger SET at = at + 1 WHERE stream = $1 AND seq = 3", ledger.ChainError{Seq: 3,
				Damage: ledger.DamageEdited}},
			{"a hash", "UPDATE ledger SET hash = $2 WHERE stream = $1 AND seq = 3", ledger.ChainError{Seq: 3,
				Damage: ledger.DamageTorn}},
			{"a record gone", "DELETE FROM ledger WHERE stream = $1 AND seq = 3", ledger.ChainError{Seq: 3,
				Damage: ledger.DamageMissing}},
			{"the first gone", "DELETE FROM ledger WHERE stream = $1 AND seq = 1", ledger.ChainError{Seq: 1,
				Damage: ledger.DamageMissing}},
			{"the last gone", "DELETE FROM ledger WHERE stream = $1 AND seq = 5", ledger.ChainError{Seq: 5,
				Damage: ledger.DamageMissing}},
			{"all gone", "DELETE FROM ledger WHERE stream = $1", ledger.ChainError{Seq: 1,
				Damage: ledger.DamageMissing}},
			{"a head that is behind", "UPDATE heads SET seq = 4 WHERE stream = $1", ledger.ChainError{Seq: 5,
				Damage: ledger.DamageEdited}},
			{"a head with another hash", "UPDATE heads SET hash = $2 WHERE stream = $1", ledger.ChainError{Seq: 5,
				Damage: ledger.DamageEdited}},
			{"the head gone", "DELETE FROM heads WHERE stream = $1", ledger.ChainError{Seq: 1,
				Damage: ledger.DamageEdited}},
			{"moved to another place", "UPDATE ledger SET seq = 9 WHERE stream = $1 AND seq = 5",
				ledger.ChainError{Seq: 5, Damage: ledger.DamageMissing}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				db, change := open(t, location), raw(t, location)
				stream := fmt.Sprintf("deck%d", i)
				tt.want.Stream = stream
				fill(t, db, stream, 5)
				fill(t, db, "clean"+stream, 2)

				args := []any{stream}
				if strings.Contains(tt.statement, "$2") {
					args = append(args, flipped(t, db, stream))
				}
				change(tt.statement, args...)

				err := ledger.VerifyChains(db.LedgerRecords(t.Context(), stream))
				got, ok := errors.AsType[*ledger.ChainError](err)
				if !ok || *got != tt.want || drawbridge.AsFault(err).Next != "" {
					t.Errorf("verify: %v, want %v", err, &tt.want)
				}
				if err := ledger.VerifyChains(db.LedgerRecords(t.Context(), "clean"+stream)); err != nil {
					t.Error("the other stream:", err)
				}
				streams, err := db.LedgerStreams(t.Context())
				if err != nil || !strings.Contains(fmt.Sprint(streams), stream) {
					t.Errorf("streams %v, %v: the damaged one is not among them", streams, err)
				}
			})
		}
		if postgres {
			return // which keeps its columns' types
		}
		t.Run("a column of another type", func(t *testing.T) {
			db := open(t, location)
			fill(t, db, "odd", 3)
			raw(t, location)("UPDATE ledger SET at = 'secret' WHERE stream = 'odd' AND seq = 2")
			want := "record 2 of odd: torn"
			if err := ledger.VerifyChains(db.LedgerRecords(t.Context(), "odd")); err == nil ||
				!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("verify: %v, want %s", err, want)
			}
			if _, err := db.Replay(t.Context(), "odd"); err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), location) {
				t.Errorf("replay: %v, want %s and the file", err, want)
			}
		})
	})
}

// flipped is the body of a stream's third record with a bit flipped: one that leaves it JSON. As a hash it is too long.
func flipped(t *testing.T, db *store.DB, stream string) []byte {
	t.Helper()
	for r, err := range db.LedgerRecords(t.Context(), stream) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq == 3 {
			return []byte(strings.Replace(string(r.Body), "tool_2", "tool_3", 1))
		}
	}
	t.Fatal("no third record")
	return nil
}

func TestReplayNamesATornRecord(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		fill(t, db, "deck", 3)
		raw(t, location)("UPDATE ledger SET body = $1 WHERE seq = 2", []byte(`{"server":"hunter2","tool":`))
		_, err := db.Replay(t.Context(), "deck")
		if err == nil || !strings.Contains(err.Error(), "record 2 of deck: torn") ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("replay: %v; want the record named, and nothing of it", err)
		}
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		fill(t, open(t, location), "deck", 1)
		raw(t, location)("UPDATE schema_version SET version = 70")
		_, err := store.Open(t.Context(), location, store.Options{})
		f, ok := errors.AsType[*drawbridge.Fault](err)
		if !ok || f.Code != drawbridge.InvalidInput || !strings.Contains(err.Error(),
			fmt.Sprintf("a newer Drawbridge wrote it: its schema is 70, and this one knows %d (update Drawbridge", store.SchemaVersion)) {
			t.Errorf("open: %v", err)
		}
	})
}

// TestMigrationIsOneStep shows that a migration which stops half way leaves nothing behind.
func TestMigrationIsOneStep(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		change := raw(t, location)
		change("CREATE TABLE mounts (in_the_way TEXT)")
		if _, err := store.Open(t.Context(), location, store.Options{}); err == nil {
			t.Fatal("open: no error, with a foreign table in the way")
		}
		change("CREATE TABLE heads (free TEXT)")
		change("CREATE TABLE schema_version (free TEXT)")
	})
}

func TestFileIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "deeper")
	path := filepath.Join(dir, "store.db")
	db := open(t, path)
	fill(t, db, "deck", 1)
	modes := map[string]os.FileMode{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		modes[e.Name()] = info.Mode()
	}
	want := map[string]os.FileMode{"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Error(diff)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has %v, %v; want 0700", d, info.Mode(), err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("after Close there is %v, %v; want the file alone", entries, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ location, want string }{
		{"", "open the store: no location (name a file, or write postgres://user:password@host:5432/database)"},
		{dir, "store " + dir + ": open: it is a directory"},
		{text, "store " + text +
			": open: file is not a database (26) (restore a backup (drawbridge restore --force FILE), or move the file away to start with a new one)"},
		{filepath.Join(text, "below.db"), "store " + filepath.Join(text, "below.db") + ": open: stat " +
			filepath.Join(text, "below.db") + ": not a directory"},
		{"postgres://me:hunter2@[::1/db",
			"open the store: the postgres:// URL is not valid (write postgres://user:password@host:5432/database)"},
		{"postgres://me:hunter2@localhost:port/db",
			"open the store: the postgres:// URL is not valid (write postgres://user:password@host:5432/database)"},
	} {
		db, err := store.Open(t.Context(), tt.location, store.Options{})
		if _, ok := errors.AsType[*drawbridge.Fault](err); !ok || err.Error() != tt.want || db != nil {
			t.Errorf("open %q:\n got %v\nwant %s", tt.location, err, tt.want)
		}
	}
}

func TestPostgresThatIsNotThere(t *testing.T) {
	_, err := store.Open(t.Context(), "postgres://me:hunter2@127.0.0.1:1/db?sslmode=disable", store.Options{})
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != drawbridge.Transient || strings.Contains(err.Error(), "hunter2") ||
		!strings.HasPrefix(err.Error(), "store postgres://127.0.0.1:1/db: open: ") {
		t.Errorf("open: %v", err)
	}
}

// TestDamagedFile cuts a file off, and writes over its middle. Whatever is noticed when, the error names the file.
func TestDamagedFile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(f *os.File, size int64) error
	}{
		{"cut off", func(f *os.File, size int64) error { return f.Truncate(size / 2) }},
		{"cut within the first page", func(f *os.File, size int64) error { return f.Truncate(1000) }},
		{"written over", func(f *os.File, size int64) error {
			_, err := f.WriteAt([]byte(strings.Repeat("damage! ", int(size-4096)/8)), 4096)
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			db := open(t, path)
			fill(t, db, "deck", 300)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, path, tt.damage)
			err := readAll(t.Context(), path)
			if _, ok := errors.AsType[*drawbridge.Fault](err); !ok || !strings.Contains(err.Error(), path) {
				t.Fatalf("%v; want a fault that names %s", err, path)
			}
		})
	}
}

func damage(t *testing.T, path string, change func(f *os.File, size int64) error) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := change(f, info.Size()); err != nil {
		t.Fatal(err)
	}
}

func readAll(ctx context.Context, path string) error {
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	_, err = db.Replay(ctx, "deck")
	return errors.Join(err, db.Close())
}

// TestBusy has another process's transaction in the way, for longer than the store waits.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	fill(t, open(t, path), "deck", 1)
	other, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), path, store.Options{BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal("open while another process writes:", err)
	}
	defer db.Close()
	if entries, err := db.Replay(t.Context(), "deck"); err != nil || len(entries) != 1 {
		t.Errorf("replay while another process writes: %d entries, %v", len(entries), err)
	}
	_, err = db.Append(t.Context(), "deck", []ledger.Entry{storetest.NewEnrolment("fs", "late")})
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != drawbridge.Transient || f.Ambiguous || !strings.Contains(err.Error(),
		"another process is writing to it; try again") {
		t.Errorf("append while another process writes: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	fill(t, db, "deck", 1)
}

func TestDamagedMemoriesAreForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		if err := db.SaveListing(t.Context(), drawbridge.Listing{Server: "fs", ConfigHash: "row"}); err != nil {
			t.Fatal(err)
		}
		raw(t, location)("UPDATE mounts SET listing = $1, status = $1", []byte("\x00{"))
		mounts, err := db.Mounts(t.Context())
		if m := mounts["row"]; err != nil || m.Listing != nil || m.Status != nil || m.Server != "fs" {
			t.Errorf("mounts %+v, %v; want the mount without what is damaged", mounts, err)
		}
	})
}
