package gateway_test

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
)

// homeConfig is a configuration with a home directory of its own and a store.
func homeConfig(home, location string) gateway.Config {
	return gateway.Config{Store: location, Dir: home, LookupEnv: func(name string) (string, bool) {
		value, ok := map[string]string{"HOME": home, gateway.KeychainVariable: "off"}[name]
		return value, ok
	}}
}

// openAndClose opens a gateway's store as a start does.
func openAndClose(t *testing.T, c gateway.Config) error {
	t.Helper()
	g, err := gateway.OpenShared(t.Context(), c)
	if err != nil {
		return err
	}
	return g.Close()
}

// otherSpellings are URLs of the same database, and how they differ.
func otherSpellings(t *testing.T, location string) map[string]string {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	more := *u
	query := more.Query()
	query.Set("application_name", "z")
	more.RawQuery = query.Encode()
	host := *u
	host.Host = "localhost:" + u.Port()
	scheme := *u
	scheme.Scheme = "postgresql"
	return map[string]string{"as it was": location, "a parameter": more.String(), "another host": host.String(),
		"another scheme": scheme.String()}
}

// TestRecordsAreFoundByAnotherSpelling leaves records in the spool, as a process does that is killed while the store
// takes nothing, and starts again with the URL spelled in another way.
func TestRecordsAreFoundByAnotherSpelling(t *testing.T) {
	first := storetest.PostgresSchema(t)
	home := t.TempDir()
	if err := openAndClose(t, homeConfig(home, first)); err != nil {
		t.Fatal(err)
	}
	recorded := 0
	for name, spelled := range otherSpellings(t, first) {
		for _, before := range []string{first, spelled} {
			if err := homeConfig(home, before).AdminRecorder().Run(gateway.AdminAction{Command: "left behind"},
				func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			recorded++
		}
		db, err := store.Open(t.Context(), spelled, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := gateway.RecoverAudit(t.Context(), homeConfig(home, spelled), db); err != nil {
			t.Fatal(err)
		}
		if got := len(audit.MergeOutcomes(auditOf(t, db))); got != recorded {
			t.Errorf("%s: the store has %d records, want %d", name, got, recorded)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpoolOfALinkIsTheFilesOwn opens a store by its file, and by a link to it.
func TestSpoolOfALinkIsTheFilesOwn(t *testing.T) {
	home := t.TempDir()
	file, link := filepath.Join(home, "store.db"), filepath.Join(home, "link.db")
	if err := openAndClose(t, homeConfig(home, file)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if err := homeConfig(home, link).AdminRecorder().Run(gateway.AdminAction{Command: "left behind"},
		func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), file, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := gateway.RecoverAudit(t.Context(), homeConfig(home, file), db); err != nil {
		t.Fatal(err)
	}
	if got := len(auditOf(t, db)); got != 2 {
		t.Errorf("the store has %d records, want 2", got)
	}
}

// TestSpoolByTheURLIsAdopted has a spool directory as earlier releases named it.
func TestSpoolByTheURLIsAdopted(t *testing.T) {
	location := storetest.PostgresSchema(t)
	home := t.TempDir()
	// No store was opened here yet, so that the directory goes by the URL.
	if err := homeConfig(home, location).AdminRecorder().Run(gateway.AdminAction{Command: "earlier"},
		func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, ".local", "state", "drawbridge")
	if byURL, err := filepath.Glob(filepath.Join(state, "postgres-*-audit", "*.spool")); err != nil || len(byURL) != 1 {
		t.Fatalf("spool files by the URL: %v, %v", byURL, err)
	}
	if err := openAndClose(t, homeConfig(home, location)); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), location, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := gateway.RecoverAudit(t.Context(), homeConfig(home, location), db); err != nil {
		t.Fatal(err)
	}
	if got := len(auditOf(t, db)); got != 2 {
		t.Errorf("the store has %d records, want the 2 of the directory by the URL", got)
	}
}

// TestASpoolOfAnotherStoreIsTold leaves records for one database, and opens another one.
func TestASpoolOfAnotherStoreIsTold(t *testing.T) {
	home := t.TempDir()
	first, second := storetest.PostgresSchema(t), storetest.PostgresSchema(t)
	for _, location := range []string{first, second} {
		if err := openAndClose(t, homeConfig(home, location)); err != nil {
			t.Fatal(err)
		}
	}
	if err := homeConfig(home, first).AdminRecorder().Run(gateway.AdminAction{Command: "left behind"},
		func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]int{first: 0, second: 1} {
		db, err := store.Open(t.Context(), location, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := db.Identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting, err := gateway.WaitingSpools(homeConfig(home, location), id)
		if err != nil || len(waiting) != want {
			t.Errorf("%d spools wait for other stores, %v; want %d", len(waiting), err, want)
		}
		for _, w := range waiting {
			if !strings.HasPrefix(w.Store, "postgres://127.0.0.1:") || w.Bytes == 0 || w.Files != 1 {
				t.Errorf("waiting: %+v", w)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAStoreBesideItsVaultIsMissed removes all files of a store but the vault, which has its signing key.
func TestAStoreBesideItsVaultIsMissed(t *testing.T) {
	home := t.TempDir()
	c := homeConfig(home, filepath.Join(home, "store.db"))
	vault, err := gateway.OpenVault(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := vault.Put("other", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(t, c); err != nil {
		t.Errorf("a vault without a signing key: %v", err)
	}
	if err := vault.Put("audit/signing-key", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(t, homeConfig(home, filepath.Join(home, "second.db"))); err != nil {
		t.Errorf("a second store: %v", err)
	}
	for _, pattern := range []string{"store.db*", "second.db*"} {
		files, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			t.Fatal(err)
		}
		removeAll(t, files...)
	}
	wantLostStore(t, openAndClose(t, c))
	if _, err := gateway.ConfirmStore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(t, c); err != nil {
		t.Errorf("after it was confirmed: %v", err)
	}
}

// TestALostStoreIsNotOpened takes a store away in several ways: what was held is not known then, so nothing runs until a
// person says so.
func TestALostStoreIsNotOpened(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { removeAll(t, path, path+"-wal", path+"-shm") },
		"removed, with all but its spool": func(t *testing.T, path string) {
			removeAll(t, path, path+"-wal", path+"-shm", path+".hub")
		},
		"emptied": func(t *testing.T, path string) {
			removeAll(t, path+"-wal", path+"-shm")
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": func(t *testing.T, path string) {
			removeAll(t, path, path+"-wal", path+"-shm")
			db, err := store.Open(t.Context(), path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			c := homeConfig(home, filepath.Join(home, "store.db"))
			for range 2 {
				if err := openAndClose(t, c); err != nil {
					t.Fatal(err)
				}
			}
			lose(t, c.Store)
			for range 2 { // the first look changes nothing
				wantLostStore(t, openAndClose(t, c))
			}
			if _, err := gateway.ConfirmStore(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if err := openAndClose(t, c); err != nil {
				t.Errorf("after it was confirmed: %v", err)
			}
		})
	}
}

func TestAnEmptiedDatabaseIsNotOpened(t *testing.T) {
	location := storetest.PostgresSchema(t)
	c := homeConfig(t.TempDir(), location)
	if err := openAndClose(t, c); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", location)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `DO $$ DECLARE r RECORD; BEGIN FOR r IN
		SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
		EXECUTE 'DROP TABLE ' || quote_ident(r.tablename); END LOOP; END $$`); err != nil {
		t.Fatal(err)
	}
	wantLostStore(t, openAndClose(t, homeConfig(c.Dir, otherSpellings(t, location)["a parameter"])))
	err = openAndClose(t, c)
	wantLostStore(t, err)
	if u, _ := url.Parse(location); err != nil && u.User != nil {
		if password, _ := u.User.Password(); strings.Contains(err.Error(), password) {
			t.Error("the error has the password")
		}
	}
	if _, err := gateway.ConfirmStore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := openAndClose(t, c); err != nil {
		t.Errorf("after it was confirmed: %v", err)
	}
}

func removeAll(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

func wantLostStore(t *testing.T, err error) {
	t.Helper()
	f := drawbridge.AsFault(err)
	if err == nil || f.Code != drawbridge.ServerError || !strings.Contains(f.Next, "drawbridge audit confirm-store") {
		t.Errorf("a store that is not the one from before: %v", err)
	}
}
