// Package store stores the data that must survive a process: the journal of the ledger, the audit, approvals and
// grants, clients, and pins. It also stores the last listing and status of every server, secrets that processes
// share, and vectors of tools.
//
// A store is an SQL database. A location that is a path is a SQLite file, which several processes may create, open
// and write concurrently. A postgres:// URL is a database on a server. Vectors may also be stored in pgvector or
// Qdrant. A change for which a method returned no error survives a crash of the process or the machine. Any other
// change is stored completely or not at all. Exceptions are documented at their methods. Times are those of the
// database's clock, in UTC, in milliseconds.
//
// Errors are *drawbridge.Fault values of kind Backend that name the file or the server. No error contains a
// password, a key or stored data. The package makes no decisions based on the data.
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
	// BusyTimeout is the time for which an operation on a SQLite file waits while another process writes; 0 means
	// defaultBusyTimeout. It does not apply to Postgres, which has its own settings.
	BusyTimeout time.Duration
}

// A DB is an open store. Its methods are safe for concurrent use.
type DB struct {
	// name is the file or server, for messages; it contains no password.
	name    string
	dialect dialect
	// writer and reader may be the same pool. Writes to a file use a single connection: SQLite permits only one
	// writer, and waiting for a connection here is fairer than waiting in SQLite.
	writer, reader *sql.DB
	// counters writes data whose last changes may be lost in a power failure. The writer's connection is reserved
	// meanwhile. counters may be the same pool as writer.
	counters          *sql.DB
	accountStatements accountStatements
	floor             clockFloor
	// file identifies the file that was opened; nil for a store without a file.
	file os.FileInfo
	// identity caches the result of Identity, which never changes; nil until the first call.
	identity atomic.Pointer[string]
}

var (
	_ ledger.Journal      = (*DB)(nil)
	_ ledger.StreamFolder = (*DB)(nil)
)

// A dialect describes the differences between the SQL of SQLite and Postgres.
type dialect struct {
	// keywords replaces the words CLOCK, the database's time in milliseconds since 1970, and BLOB, the type of byte
	// strings.
	keywords *strings.Replacer
	// questionMarks reports whether statements with many parameters use question marks instead of numbers.
	questionMarks bool
	// lock is the statement at the beginning of a migration that excludes other processes; empty if the transaction
	// does that.
	lock string
	// fault returns the fault code for a database error, and advice for the user.
	fault func(err error) (code drawbridge.FaultCode, next string)
	// isMissingTable reports whether a database error may mean that a table is missing.
	isMissingTable func(err error) bool
	// isCommitUnknown reports whether a commit that returned err may nevertheless have taken effect.
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
	if err := db.migrate(ctx); err != nil {
		_ = db.Close() // the first error matters
		return nil, err
	}
	return db, nil
}

// Close closes the store. It waits for operations in progress.
func (db *DB) Close() error {
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

// inTransaction calls work in one transaction. On a SQLite file, the transaction excludes all other writers from its
// beginning.
func (db *DB) inTransaction(ctx context.Context, step string, work func(tx *sql.Tx) error) error {
	return db.inTransactionOn(ctx, db.writer, step, work)
}

// inCounterTransaction calls work in one transaction, for counters that change at each call. The change survives the
// end of this process. On a SQLite file it does not wait for the disk.
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

// checkFile returns an error if the store's file was removed or replaced: data written to it would be lost.
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

// transactionError returns the reason why a transaction ended. If the context is done, database/sql rolls the
// transaction back, and later calls return only sql.ErrTxDone; then the reason is the context's error.
func transactionError(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// expandKeywords replaces the dialect's keywords in a statement with SQL.
func (db *DB) expandKeywords(statement string) string { return db.dialect.keywords.Replace(statement) }

// fault returns the fault for a database error, with the store's name and the step. An error that is a fault is
// returned unchanged.
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

// newFault returns a fault with the store's name, for an error found by this package.
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
