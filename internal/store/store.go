// Package store stores the data that must survive a process:
//   - the journal of the ledger, which is the log of all tools that were enrolled and retired
//   - the audit, which contains the records of calls
//   - approval requests and grants for calls, and people's decisions about configuration rows
//   - clients with their tokens, and pins, which are the accepted definitions of tools
//   - the last listing and status of each server
//   - secrets that several processes share
//   - vectors of the texts of tools
//   - output types that were learned from the results of tools
//
// A [Workspace] is a database of its own, with the pages of a workspace and their history.
//
// A store is an SQL database. If the location of the store is a path, the database is a SQLite file, which several
// processes may create, open and write concurrently. If the location is a postgres:// URL, the database is on a
// server. Vectors may be stored outside the store, in pgvector or Qdrant.
//
// If a method returns no error, its change survives a crash of the process or the machine. If a method returns an
// error, its change was stored completely or not at all. Methods for which this is not true document the difference.
// Times are those of the database's clock, in UTC, in milliseconds.
//
// Errors are *drawbridge.Fault values of kind Backend that name the file or the server. No error contains a password,
// a key or stored data.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// defaultBusyTimeout is the default of Options.BusyTimeout.
const defaultBusyTimeout = 10 * time.Second

// Options are the options of a store. The zero value is valid.
type Options struct {
	// BusyTimeout is the time for which an operation on a SQLite file waits while another process writes; after that
	// time the operation fails. 0 means defaultBusyTimeout. BusyTimeout has no effect on Postgres, which has its own
	// settings.
	BusyTimeout time.Duration
}

// A DB is an open store. Its methods are safe for concurrent use.
type DB struct {
	// name is the file or server, for messages; it contains no password.
	name    string
	dialect dialect
	// schema has the migration steps of the tables, see stateSchema. versionTable is the table with their number.
	schema       []string
	versionTable string
	// writer and reader are the connection pools for writing and reading; both may be the same pool. For a SQLite
	// file, writer has a single connection, because SQLite permits only one writer at a time. Waiting for this
	// connection is fairer than waiting in SQLite.
	writer, reader *sql.DB
	// counters is the connection pool for quotas and similar data, whose last changes may be lost in a power failure.
	// A transaction on counters first reserves the connection of writer. counters may be the same pool as writer.
	counters          *sql.DB
	accountStatements accountStatements
	floor             clockFloor
	// file identifies the file that was opened; nil for a store without a file.
	file os.FileInfo
	// blocks encodes and decodes the blocks of the audit.
	blocks blockCodec
	// identity caches the result of Identity, which never changes; nil until the first call.
	identity atomic.Pointer[string]
}

var (
	_ ledger.Journal      = (*DB)(nil)
	_ ledger.StreamFolder = (*DB)(nil)
)

// A dialect describes the differences between the SQL of SQLite and Postgres.
type dialect struct {
	// keywords replaces two words in a statement by SQL. CLOCK becomes the expression for the database's time in
	// milliseconds since 1970, and BLOB becomes the type of byte strings.
	keywords *strings.Replacer
	// isSQLite reports whether the database is SQLite: statements with many parameters use the placeholder "?" for each
	// of them instead of "$1", "$2" and so on, and a search has a virtual table.
	isSQLite bool
	// snapshot begins a transaction that reads one state of the database. In SQLite each transaction does.
	snapshot *sql.TxOptions
	// lock is a statement that a migration executes first, so that only one process migrates the tables at a time.
	// lock is empty if the transaction of the migration already excludes other writers. writeLock does the same for writes
	// to a workspace.
	lock, writeLock string
	// skipLocked makes a query for one row lock it, and leave out rows that other transactions have locked.
	skipLocked string
	// fault returns the fault code for a database error, and advice for the user.
	fault func(err error) (code drawbridge.FaultCode, next string)
	// isMissingTable reports whether a database error may mean that a table is missing.
	isMissingTable func(err error) bool
	// isCommitUnknown reports whether a commit that returned err may have stored the change in spite of the error.
	isCommitUnknown func(err error) bool
}

// Open opens the store at a location, which has one of three forms:
//   - the path of a SQLite file, which is created if it does not exist
//   - ":memory:", for a store in memory that is lost when the DB is closed
//   - a postgres:// URL, see CheckLocation
//
// Open creates or migrates the tables. A fault with code InvalidInput means that the location is invalid, or that a
// newer Drawbridge has written the store.
func Open(ctx context.Context, location string, o Options) (*DB, error) {
	return openTables(ctx, location, o, stateVersions, func(dialect) []string { return stateSchema[:] })
}

// openTables opens a database and creates or migrates the tables of a schema. versions is the table with the version.
func openTables(ctx context.Context, location string, o Options, versions string, schema func(dialect) []string) (*DB, error) {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	location, err := CheckLocation(location)
	if err != nil {
		return nil, err
	}
	var db *DB
	if strings.Contains(location, "://") {
		db, err = openPostgres(location)
	} else {
		db, err = openSQLite(ctx, location, o)
	}
	if err != nil {
		return nil, err
	}
	db.schema, db.versionTable = schema(db.dialect), versions
	if err := db.migrate(ctx); err != nil {
		_ = db.Close() // the first error matters
		return nil, err
	}
	return db, nil
}

// Close closes the store. It waits for operations in progress.
func (db *DB) Close() error {
	defer db.blocks.close()
	var err error
	if db.reader != db.writer {
		err = db.reader.Close()
	}
	if db.counters != db.writer {
		err = errors.Join(err, db.counters.Close())
	}
	// Close the writer last: the last connection to a SQLite file merges the log into the file.
	if err := errors.Join(err, db.writer.Close()); err != nil {
		return db.fault("close", err)
	}
	return nil
}

// inTransaction calls work in one transaction. If work returns an error, the transaction is rolled back. On a SQLite
// file, no other transaction can write between the beginning and the end of this transaction. step names the
// operation in errors.
func (db *DB) inTransaction(ctx context.Context, step string, work func(tx *sql.Tx) error) error {
	return db.inTransactionOn(ctx, db.writer, step, work)
}

// inCounterTransaction is like inTransaction, but for counters that change at each call, and for data that the next
// listing of a server restores. On a SQLite file it does not wait for the disk. So the change
// survives the end of this process, but a power failure may lose it, if no later transaction waited for the disk.
func (db *DB) inCounterTransaction(ctx context.Context, step string, work func(tx *sql.Tx) error) error {
	if db.counters != db.writer {
		line, err := db.writer.Conn(ctx)
		if err != nil {
			return db.fault(step, err)
		}
		defer line.Close()
	}
	return db.inTransactionOn(ctx, db.counters, step, work)
}

func (db *DB) inTransactionOn(ctx context.Context, with *sql.DB, step string, work func(tx *sql.Tx) error) error {
	if f := db.checkFile(step); f != nil {
		return f
	}
	tx, err := with.BeginTx(ctx, nil)
	if err != nil {
		return db.fault(step, err)
	}
	defer tx.Rollback() // if work panics; does nothing after Commit
	if err := work(tx); err != nil {
		_ = tx.Rollback() // the first error matters
		return db.fault(step, transactionError(ctx, err))
	}
	if err := tx.Commit(); err != nil {
		f := db.fault(step, transactionError(ctx, err))
		f.Ambiguous = !errors.Is(err, sql.ErrTxDone) && db.dialect.isCommitUnknown(err)
		return f
	}
	return nil
}

// checkFile returns an error if the store's file was removed or replaced. Data written to the file that is still open
// would then be lost.
func (db *DB) checkFile(step string) error {
	if db.file == nil {
		return nil
	}
	if now, err := os.Stat(db.name); err == nil && os.SameFile(now, db.file) {
		return nil
	}
	f := db.newFault(step, drawbridge.ServerError,
		errors.New("the file was removed or replaced"))
	f.Next = "restore it, or restart Drawbridge"
	return f
}

// transactionError returns the reason for which a transaction ended. If the context is done, database/sql rolls the
// transaction back, and later statements return only sql.ErrTxDone. In that case transactionError returns the
// context's error; otherwise it returns err.
func transactionError(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// expandKeywords replaces the words CLOCK and BLOB in a statement, see dialect.keywords.
func (db *DB) expandKeywords(statement string) string { return db.dialect.keywords.Replace(statement) }

// fault returns the fault for a database error, with the store's name and the step. If err already is a fault, fault
// returns it unchanged.
func (db *DB) fault(step string, err error) *drawbridge.Fault {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return f
	}
	if _, ok := errors.AsType[*ledger.ChainError](err); ok {
		return db.newFault(step, drawbridge.ServerError, err)
	}
	f := db.newFault(step, drawbridge.Transient, err)
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		f.Code, f.Next = db.dialect.fault(err)
	}
	return f
}

// newFault returns a fault of kind Backend, with the store's name and the step.
func (db *DB) newFault(step string, code drawbridge.FaultCode, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: fmt.Sprintf("store %s: %s", db.name, step),
		Err: FlattenConnectError(err)}
}

// fromMillis returns the time for a column value in milliseconds since 1970; the zero time for 0.
func fromMillis(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
