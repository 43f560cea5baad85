// Package store saves everything that must outlive a process: the journal of the ledger, the audit, approvals and
// grants, clients, pins, the last listing and status of every server, secrets that processes share, and vectors of
// tools.
//
// It is one SQL store in two dialects. A path is a SQLite file, which several processes may create, open and write at
// once; a postgres:// URL is a database on a server. Vectors may also be kept by pgvector or Qdrant. A change that a
// method has acknowledged survives a crash of the process or the machine. A change without acknowledgement is saved
// completely or not at all. The exceptions are named at their methods. Times are the database's own, in UTC, to the
// millisecond.
//
// Errors are *drawbridge.Fault values of kind Backend that name the file or the server. No error holds a password, a
// key or stored data. The package decides nothing about the data.
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

// defaultBusyTimeout is how long a write waits for other processes by default.
const defaultBusyTimeout = 10 * time.Second

// Options are options of a store. The zero value works.
type Options struct {
	// BusyTimeout is how long an operation on a SQLite file waits while another process writes; 0 is
	// defaultBusyTimeout. Postgres has settings of its own for this.
	BusyTimeout time.Duration
}

// A DB is an open store. Its methods may be called from several goroutines.
type DB struct {
	// name is the file or server, for people: it holds no password.
	name    string
	dialect dialect
	// writer and reader may be one pool. Writes to a file go through a single connection: SQLite has one writer anyway,
	// and waiting in line here is fairer than there.
	writer, reader *sql.DB
	// counters writes data whose last changes may be lost in a power failure, while the writer's connection is held; it
	// may be the same pool.
	counters          *sql.DB
	accountStatements accountStatements
	floor             clockFloor
	// file identifies the file that was opened; nil for a store without a file.
	file os.FileInfo
	// identity caches Identity, which never changes; nil until it is read.
	identity atomic.Pointer[string]
}

var (
	_ ledger.Journal      = (*DB)(nil)
	_ ledger.StreamFolder = (*DB)(nil)
)

// A dialect holds the differences between the SQL of the two engines.
type dialect struct {
	// keywords stand for CLOCK, the database's time in milliseconds since 1970, and for BLOB, the type of byte strings.
	keywords *strings.Replacer
	// questionMarks reports that parameters of long statements are question marks.
	questionMarks bool
	// lock begins a migration if a transaction alone does not exclude all others.
	lock string
	// fault returns the code and the next step for an error of the engine.
	fault func(err error) (code drawbridge.FaultCode, next string)
	// isMissingTable reports whether an error means a missing table.
	isMissingTable func(err error) bool
	// isCommitUnknown reports whether a commit that ended in err may have taken effect.
	isCommitUnknown func(err error) bool
}

// Open opens the store at a location: the path of a SQLite file, which is created if it does not exist; ":memory:",
// which ends with the DB; or a postgres:// URL, see CheckLocation. Open creates or migrates the tables, and refuses a
// store that a newer Drawbridge has written. Code InvalidInput means a wrong location or a store that is too new.
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
	// The writer is last: the last connection to close a SQLite file folds its log into it.
	if err := errors.Join(err, db.writer.Close()); err != nil {
		return db.fault("close", err)
	}
	return nil
}

// inTransaction runs work in one transaction. On a SQLite file it excludes all other writers from its beginning.
func (db *DB) inTransaction(ctx context.Context, step string, work func(tx *sql.Tx) error) error {
	return db.inTransactionOn(ctx, db.writer, step, work)
}

// inCounterTransaction is inTransaction for counters that change at each call. The end of this process does not lose
// the change, and no call waits for the disk of a SQLite file.
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

// checkFile refuses to write to a file that was removed or replaced: the data would be lost.
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

// transactionError returns the reason for the end of a transaction that ended by itself: database/sql rolls back when
// its context ends, and later errors only report that it is done.
func transactionError(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// expandKeywords replaces the dialect's keywords in a statement.
func (db *DB) expandKeywords(statement string) string { return db.dialect.keywords.Replace(statement) }

// fault returns a fault for an error of the database, with the store's name and the step. It returns a fault unchanged.
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

// newFault returns a fault for an error of this package.
func (db *DB) newFault(step string, code drawbridge.FaultCode, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: fmt.Sprintf("store %s: %s", db.name, step),
		Err: FlattenConnectError(err)}
}

// fromMillis returns the time of a column value in milliseconds; the zero time for 0.
func fromMillis(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
