package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// UpdateAccount replaces the body of the account with the given kind and name, in one transaction. An account
// contains a counter or other data about one caller or server. The function work gets the current body (empty if
// there is none) and the highest time of the database's clock, and returns the new body. If work returns an error,
// UpdateAccount changes nothing and returns that error; any other error is a *drawbridge.Fault. The change survives
// the end of this process. However, a power failure may lose the last changes to a SQLite file.
func (db *DB) UpdateAccount(ctx context.Context, kind, name string, work func(body []byte,
	now time.Time) ([]byte, error)) error {
	step := "change the " + kind + " of " + name
	take, put, err := db.accountStatements.prepare(ctx, db)
	if err != nil {
		return db.fault(step, err)
	}
	// With the highest time, a used-up quota stays used up if the clock goes back.
	floor, err := db.highestTime(ctx)
	if err != nil {
		return err
	}
	var refused error
	err = db.inCounterTransaction(ctx, step, func(tx *sql.Tx) error {
		var body []byte
		var now int64
		if err := tx.StmtContext(ctx, take).QueryRowContext(ctx, kind, name, []byte{}).Scan(&body, &now); err != nil {
			return err
		}
		if body, refused = work(body, latest(fromMillis(now), floor)); refused != nil {
			return refused
		}
		_, err := tx.StmtContext(ctx, put).ExecContext(ctx, body, kind, name)
		return err
	})
	if refused != nil {
		return refused
	}
	return err
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// accountStatements caches the prepared statements of UpdateAccount, which is called for each call of a tool. SQLite
// takes longer to parse such a statement than to execute it.
type accountStatements struct {
	mu        sync.Mutex
	take, put *sql.Stmt
}

// prepare returns the prepared statements: take inserts the account if it is missing, locks it and reads it; put
// writes the new body.
func (c *accountStatements) prepare(ctx context.Context, db *DB) (take, put *sql.Stmt, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.take == nil {
		c.take, err = db.counters.PrepareContext(ctx, db.expandKeywords(`INSERT INTO accounts (kind, name, body) VALUES ($1, $2, $3)
			ON CONFLICT (kind, name) DO UPDATE SET body = accounts.body RETURNING body, CLOCK`))
	}
	if err == nil && c.put == nil {
		c.put, err = db.counters.PrepareContext(ctx, "UPDATE accounts SET body = $1 WHERE kind = $2 AND name = $3")
	}
	return c.take, c.put, err
}

// Accounts returns the bodies of all accounts of a kind, by account name. It omits empty bodies.
func (db *DB) Accounts(ctx context.Context, kind string) (map[string][]byte, error) {
	step := "read the accounts of " + kind
	rows, err := db.reader.QueryContext(ctx, "SELECT name, body FROM accounts WHERE kind = $1", kind)
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	all := map[string][]byte{}
	for rows.Next() {
		var name string
		var body []byte
		if err := rows.Scan(&name, &body); err != nil {
			return nil, db.fault(step, err)
		}
		if len(body) > 0 {
			all[name] = body
		}
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// Account returns the body of one account, or nil if the account does not exist.
func (db *DB) Account(ctx context.Context, kind, name string) ([]byte, error) {
	var body []byte
	err := db.reader.QueryRowContext(ctx, "SELECT body FROM accounts WHERE kind = $1 AND name = $2", kind,
		name).Scan(&body)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, db.fault("read the "+kind+" of "+name, err)
	}
	return body, nil
}
