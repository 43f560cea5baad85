package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// defaultBusyTimeout is how long a write waits for those of other processes where nobody says otherwise.
const defaultBusyTimeout = 10 * time.Second

// Options are what a store can do without. The zero value works.
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
	// counters writes what need not outlive the machine's loss of power in the last moment, while the writer's
	// connection is held; it may be the same pool.
	counters          *sql.DB
	accountStatements accountStatements
	// file is what the name led to when it was opened; nil where it is no file.
	file os.FileInfo
}

var (
	_ ledger.Journal      = (*DB)(nil)
	_ ledger.StreamFolder = (*DB)(nil)
)

// A dialect is all that the two engines' SQL differs in.
type dialect struct {
	// keywords stand for CLOCK, the database's time in milliseconds since 1970, and for BLOB, the type of byte strings.
	keywords *strings.Replacer
	// questionMarks says that the parameters of long statements are question marks.
	questionMarks bool
	// lock is what a migration begins with, where the transaction is not itself a lock against all others.
	lock string
	// fault says what an error of the engine means: what can be done about it, and by whom.
	fault func(err error) (code drawbridge.FaultCode, next string)
	// isMissingTable says whether an error is about a table that there is not.
	isMissingTable func(err error) bool
	// isCommitUnknown says whether a commit that ended in err may have taken effect.
	isCommitUnknown func(err error) bool
}

// Open opens the store at a location: the path of a SQLite file, which is made where there is none, ":memory:" for one
// that ends with the DB, or a postgres:// URL; see CheckLocation. The tables are made, or brought up to date; a store
// that a newer Drawbridge has written is refused. Code InvalidInput means the location, or a store that is too new.
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
		_ = db.Close() // what went wrong before says more
		return nil, err
	}
	return db, nil
}

// Close closes the store. It waits for what is going on.
func (db *DB) Close() error {
	var err error
	if db.reader != db.writer {
		err = db.reader.Close()
	}
	if db.counters != db.writer {
		err = errors.Join(err, db.counters.Close())
	}
	// The writer is last: what closes a SQLite file last folds its log into it.
	if err := errors.Join(err, db.writer.Close()); err != nil {
		return db.fault("close", err)
	}
	return nil
}

// inTransaction does work in one transaction. On a SQLite file it is the only one at that moment, from its beginning.
func (db *DB) inTransaction(ctx context.Context, step string, work func(tx *sql.Tx) error) error {
	return db.inTransactionOn(ctx, db.writer, step, work)
}

// inCounterTransaction is write for what is counted at each call: the end of this process does not lose it, and on a
// SQLite file no call waits for the disk.
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
		_ = tx.Rollback() // what went wrong before says more
		return db.fault(step, transactionError(ctx, err))
	}
	if err := tx.Commit(); err != nil {
		f := db.fault(step, transactionError(ctx, err))
		f.Ambiguous = !errors.Is(err, sql.ErrTxDone) && db.dialect.isCommitUnknown(err)
		return f
	}
	return nil
}

// checkFile refuses to write into a file that was removed, or that another one took the place of: nobody would find
// again what is written there.
func (db *DB) checkFile(step string) error {
	if db.file == nil {
		return nil
	}
	if now, err := os.Stat(db.name); err == nil && os.SameFile(now, db.file) {
		return nil
	}
	f := db.newFault(step, drawbridge.ServerError,
		errors.New("the file was removed, or another one stands in its place"))
	f.Next = "put it back, or start Drawbridge again"
	return f
}

// transactionError gives why a transaction is over that nobody here ended: database/sql rolls one back when its
// context ends, and says of all that comes after that only that it is done.
func transactionError(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// expandKeywords puts the dialect's words into a statement.
func (db *DB) expandKeywords(statement string) string { return db.dialect.keywords.Replace(statement) }

// fault makes a fault of an error of the database: where something was being done, and what. It gives a fault back as
// it is.
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

// newFault makes a fault of an error of our own.
func (db *DB) newFault(step string, code drawbridge.FaultCode, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: fmt.Sprintf("store %s: %s", db.name, step),
		Err: FlattenConnectError(err)}
}

// fromMillis is the time that a column of milliseconds holds; the zero time for 0.
func fromMillis(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
