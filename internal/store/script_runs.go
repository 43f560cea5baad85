package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A ScriptRun is a run of a script that waited for a person, and can be repeated after its process ended. The process
// that runs it extends its lease repeatedly. If that process ends, the lease expires, and another one may take the run.
type ScriptRun struct {
	// ID is the name that people use for the run. Owner is a hash of the caller. Call is a hash of the arguments of
	// run_python.
	ID, Owner, Call string
	// Holder identifies the process that runs it.
	Holder string
	// Request is what was called. The store does not interpret it, as it does not interpret the entries.
	Request []byte
	// Created is the time at which the run first waited for a person.
	Created time.Time
}

const (
	// scriptRunRetention is how long a run can be repeated after its process ended. maxInterruptedRuns is the maximum number of runs
	// without a process, of which the oldest are removed; maxScriptRuns is the maximum number of all runs.
	scriptRunRetention = time.Hour
	maxInterruptedRuns = 50
	maxScriptRuns      = 200
)

// AddScriptRun stores a run with its first entries. It removes old runs. The fault has the code
// RateLimited if there are too many runs, and InvalidInput if the ID is taken.
func (db *DB) AddScriptRun(ctx context.Context, r ScriptRun, entries [][]byte, lease time.Duration) error {
	const step = "store a run"
	if _, err := db.highestTime(ctx); err != nil {
		return err
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		for _, statement := range []string{
			"DELETE FROM script_runs WHERE ends <= CLOCK OR created > CLOCK",
			fmt.Sprintf(`DELETE FROM script_runs WHERE held <= CLOCK AND id NOT IN (SELECT id FROM (
				SELECT id FROM script_runs WHERE held <= CLOCK ORDER BY created DESC, id LIMIT %d) AS newest)`, maxInterruptedRuns),
			"DELETE FROM script_run_entries WHERE run NOT IN (SELECT id FROM script_runs)",
		} {
			if _, err := tx.ExecContext(ctx, db.expandKeywords(statement)); err != nil {
				return err
			}
		}
		var all, same int
		row := tx.QueryRowContext(ctx, "SELECT COUNT(*), COALESCE(SUM(CASE WHEN id = $1 THEN 1 ELSE 0 END), 0) FROM script_runs", r.ID)
		switch err := row.Scan(&all, &same); {
		case err != nil:
			return err
		case same > 0:
			return db.newFault(step, drawbridge.InvalidInput, fmt.Errorf("there is a run %.20q", r.ID))
		case all >= maxScriptRuns:
			return db.newFault(step, drawbridge.RateLimited, fmt.Errorf("%d runs are stored already", all))
		}
		_, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO script_runs (id, owner, call_hash, holder, request, created, held, ends)
			VALUES ($1, $2, $3, $4, $5, CLOCK, CLOCK + $6, CLOCK + $7)`), r.ID, r.Owner, r.Call, r.Holder, r.Request, lease.Milliseconds(),
			scriptRunRetention.Milliseconds())
		if err != nil {
			return err
		}
		return addScriptEntries(ctx, tx, r.ID, 0, entries)
	})
}

func addScriptEntries(ctx context.Context, tx *sql.Tx, id string, at int, entries [][]byte) error {
	for i, entry := range entries {
		if _, err := tx.ExecContext(ctx, "INSERT INTO script_run_entries (run, seq, entry) VALUES ($1, $2, $3)", id, at+i,
			entry); err != nil {
			return err
		}
	}
	return nil
}

// errNotHeld is the error of a process that no longer holds a run.
var errNotHeld = errors.New("another process has taken the run, or it is too old")

// AppendScriptRun adds entries to a run that the holder runs, from the entry number at on. After an error the holder must
// not go on: another process may have taken the run.
func (db *DB) AppendScriptRun(ctx context.Context, id, holder string, at int, entries [][]byte, lease time.Duration) error {
	const step = "record a run"
	if _, err := db.highestTime(ctx); err != nil {
		return err
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		if err := db.extendScriptRun(ctx, tx, step, id, holder, lease); err != nil {
			return err
		}
		return addScriptEntries(ctx, tx, id, at, entries)
	})
}

// extendScriptRun extends the lease of a run, if the holder still has it.
func (db *DB) extendScriptRun(ctx context.Context, tx *sql.Tx, step, id, holder string, lease time.Duration) error {
	held, err := db.execChanged(ctx, tx, `UPDATE script_runs SET held = CLOCK + $1, ends = CLOCK + $2
		WHERE id = $3 AND holder = $4 AND ends > CLOCK`, lease.Milliseconds(), scriptRunRetention.Milliseconds(), id, holder)
	if err == nil && !held {
		err = db.newFault(step, drawbridge.NotFound, errNotHeld)
	}
	return err
}

// HoldScriptRun extends the lease of a run. The fault has the code NotFound if the holder no longer has it.
func (db *DB) HoldScriptRun(ctx context.Context, id, holder string, lease time.Duration) error {
	return db.AppendScriptRun(ctx, id, holder, 0, nil, lease)
}

// TakeScriptRun gives a run whose process ended to a new holder, and returns it with its entries. The run is the one of
// the owner with the id; or, if id is empty, the last one in which it called call. The fault has the code NotFound if there is
// none, and Transient if its process still runs it.
func (db *DB) TakeScriptRun(ctx context.Context, owner, id, call, holder string, lease time.Duration) (r ScriptRun,
	entries [][]byte, err error) {
	const step = "resume a run"
	if _, err := db.highestTime(ctx); err != nil {
		return r, nil, err
	}
	err = db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		var created, running int64
		var before string
		row := tx.QueryRowContext(ctx, db.expandKeywords(`SELECT id, owner, call_hash, request, holder, created,
			CASE WHEN held > CLOCK THEN 1 ELSE 0 END FROM script_runs
			WHERE owner = $1 AND (id = $2 OR ($2 = '' AND call_hash = $3)) AND ends > CLOCK AND created <= CLOCK
			ORDER BY created DESC, id LIMIT 1`), owner, id, call)
		switch err := row.Scan(&r.ID, &r.Owner, &r.Call, &r.Request, &before, &created, &running); {
		case errors.Is(err, sql.ErrNoRows):
			return db.newFault(step, drawbridge.NotFound, errors.New("no interrupted run is stored for this"))
		case err != nil:
			return err
		case running > 0:
			return db.runningFault(step, r.ID)
		}
		r.Holder, r.Created = holder, fromMillis(created)
		// Another process may have taken it since the row was read.
		taken, err := db.execChanged(ctx, tx,
			"UPDATE script_runs SET holder = $1 WHERE id = $2 AND holder = $3 AND held <= CLOCK", holder, r.ID, before)
		switch {
		case err != nil:
			return err
		case !taken:
			return db.runningFault(step, r.ID)
		}
		if err := db.extendScriptRun(ctx, tx, step, r.ID, holder, lease); err != nil {
			return err
		}
		entries, err = scriptEntries(ctx, tx, r.ID)
		return err
	})
	return r, entries, err
}

func (db *DB) runningFault(step, id string) error {
	return db.newFault(step, drawbridge.Transient, fmt.Errorf("the process that runs %.20q has not ended", id))
}

func scriptEntries(ctx context.Context, tx *sql.Tx, id string) (entries [][]byte, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT entry FROM script_run_entries WHERE run = $1 ORDER BY seq", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var entry []byte
		if err := rows.Scan(&entry); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, rows.Err()
}

// ReleaseScriptRun ends the lease of a run: it may be taken at once.
func (db *DB) ReleaseScriptRun(ctx context.Context, id, holder string) error {
	return db.execWrite(ctx, "release a run", "UPDATE script_runs SET held = 0 WHERE id = $1 AND holder = $2", id, holder)
}

// DropScriptRun deletes a run that has ended, with its entries.
func (db *DB) DropScriptRun(ctx context.Context, id, holder string) error {
	return db.inTransaction(ctx, "drop a run", func(tx *sql.Tx) error {
		held, err := db.execChanged(ctx, tx, "DELETE FROM script_runs WHERE id = $1 AND holder = $2", id, holder)
		if err != nil || !held {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM script_run_entries WHERE run = $1", id)
		return err
	})
}

// EraseScriptRuns deletes all runs with their entries, so that nothing of them stays in the file of a SQLite store. None
// can be repeated then.
func (db *DB) EraseScriptRuns(ctx context.Context) error {
	const step = "erase the runs of scripts"
	if db.dialect.isSQLite {
		if _, err := db.writer.ExecContext(ctx, "PRAGMA secure_delete = ON"); err != nil {
			return db.fault(step, err)
		}
		defer func() { // the other writes need not be slower
			_, _ = db.writer.ExecContext(context.WithoutCancel(ctx), "PRAGMA secure_delete = OFF")
		}()
	}
	err := db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		for _, statement := range []string{"DELETE FROM script_run_entries", "DELETE FROM script_runs"} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return db.emptyLog(ctx, step)
}

// InterruptedRuns returns the runs of an owner that can be taken, the last one first. They have no Request.
func (db *DB) InterruptedRuns(ctx context.Context, owner string) ([]ScriptRun, error) {
	const step = "read the interrupted runs"
	rows, err := db.reader.QueryContext(ctx, db.expandKeywords(`SELECT id, created FROM script_runs
		WHERE owner = $1 AND ends > CLOCK AND held <= CLOCK AND created <= CLOCK ORDER BY created DESC, id`), owner)
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []ScriptRun
	for rows.Next() {
		r := ScriptRun{Owner: owner}
		var created int64
		if err := rows.Scan(&r.ID, &created); err != nil {
			return nil, db.fault(step, err)
		}
		r.Created = fromMillis(created)
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}
