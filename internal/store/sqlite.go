package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"

	"github.com/drawbridge-mcp/drawbridge"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// memoryLocation is the location of a store in memory, without a file.
const memoryLocation = ":memory:"

// sqliteReaders is the number of connections that can read a file concurrently.
const sqliteReaders = 4

func sqliteDialect() dialect {
	return dialect{
		isSQLite:       true,
		keywords:       strings.NewReplacer("CLOCK", "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)"),
		fault:          sqliteFault,
		isMissingTable: func(err error) bool { return sqliteCode(err) == sqlite3.SQLITE_ERROR },
		// The file is on this machine: a commit that failed was rolled back.
		isCommitUnknown: func(error) bool { return false },
	}
}

func openSQLite(ctx context.Context, path string, o Options) (*DB, error) {
	db := &DB{name: path, dialect: sqliteDialect()}
	if path != memoryLocation {
		var err error
		if db.name, err = filepath.Abs(path); err == nil {
			err = createStoreFile(db.name)
		}
		if err != nil {
			return nil, db.newFault("open", drawbridge.InvalidInput, err)
		}
	}
	var err error
	if db.writer, err = openSQLitePool(dataSource(db.name, o, "_txlock", "immediate"), 1); err != nil {
		return nil, db.fault("open", err)
	}
	if path == memoryLocation {
		db.reader, db.counters = db.writer, db.writer // each connection to :memory: has its own database
		return db, nil
	}
	if db.counters, err = openSQLitePool(dataSource(db.name, o, "_txlock", "immediate", "_synchronous", "NORMAL"),
		1); err != nil {
		_ = db.writer.Close() // the first error matters
		return nil, db.fault("open", err)
	}
	if db.reader, err = openSQLitePool(dataSource(db.name, o, "_query_only", "1"), sqliteReaders); err != nil {
		_ = errors.Join(db.counters.Close(), db.writer.Close()) // the first error matters
		return nil, db.fault("open", err)
	}
	if err := enableWriteAhead(ctx, db.writer, o.BusyTimeout); err != nil {
		_ = db.Close() // the first error matters
		return nil, db.fault("open", err)
	}
	if db.file, err = os.Stat(db.name); err != nil {
		_ = db.Close() // the first error matters
		return nil, db.newFault("open", drawbridge.ServerError, err)
	}
	return db, nil
}

func openSQLitePool(source string, connections int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// dataSource returns the data source name of a database for the SQLite driver, with the settings of each connection.
// The arguments more are further settings, as pairs of names and values. The path is escaped, because it may contain
// any characters.
func dataSource(path string, o Options, more ...string) string {
	query := url.Values{
		"_busy_timeout": {strconv.FormatInt(o.BusyTimeout.Milliseconds(), 10)},
		"_synchronous":  {"FULL"}, // in write-ahead mode, NORMAL can lose the last commits in a power failure
		"_foreign_keys": {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
	}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	if path == memoryLocation {
		return "file::memory:?" + query.Encode()
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// createStoreFile creates the store's file, empty and readable only by its owner, and missing directories. If the
// file exists, it only removes the access rights of other users. SQLite creates its additional files in the same
// directory with the same permissions.
//
// The file is created under another name and then linked, so that this process never opens the file under its own
// name. Closing a file releases all locks of the process on this file, including the locks of another DB
// (https://sqlite.org/howtocorrupt.html, 2.2).
func createStoreFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("it is a directory")
	case err == nil:
		return protectStoreFiles(path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := protectStoreFiles(path); err != nil { // refuses a symbolic link without a target
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".store-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	// Errors are ignored: another process may have created the file, and without hard links SQLite creates the file
	// itself.
	_ = os.Link(f.Name(), path)
	return nil
}

// protectStoreFiles removes the access rights of other users from the store's file and from SQLite's additional
// files. It returns an error if one of the files is a link or belongs to another user.
func protectStoreFiles(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := privatefile.Protect(path+suffix, false); err != nil {
			return err
		}
	}
	return nil
}

// enableWriteAhead changes the file to SQLite's write-ahead mode, which is permanent. While the mode changes, SQLite
// does not wait for other processes that open the same new file, so enableWriteAhead retries. After the duration
// patience it stops and returns SQLite's error.
func enableWriteAhead(ctx context.Context, db *sql.DB, patience time.Duration) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		_, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		if err == nil || sqliteCode(err) != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

// sqliteCode returns SQLite's primary result code of an error; 0 for errors of other packages.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xFF
	}
	return 0
}

func sqliteFault(err error) (code drawbridge.FaultCode, next string) {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return drawbridge.Transient, "another process is writing to it; try again"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return drawbridge.ServerError, "restore a backup (drawbridge restore --force FILE), or move the file away to start with a new one"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return drawbridge.ServerError, "make the file and its directory writable"
	case sqlite3.SQLITE_FULL:
		return drawbridge.ServerError, "the disk is full"
	}
	return drawbridge.ServerError, ""
}
