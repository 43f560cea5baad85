package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A HeldResult is a server's result that matched rules of the shield and was therefore not returned to the caller. It
// is stored so that a person can read it.
type HeldResult struct {
	// ID is the name that people use for the result.
	ID string
	At time.Time
	// Principal is the caller, who called Card of Server with Method.
	Principal, Card, Method string
	Server                  drawbridge.ServerID
	// Rules are the shield's rules that the result matched. Result is the whole result.
	Rules  []string
	Result json.RawMessage
}

const (
	// heldResultRetention is the maximum age of held results, and maxHeldResults their maximum number.
	// maxHeldResultBytes is their maximum total size.
	heldResultRetention = 30 * 24 * time.Hour
	maxHeldResults      = 1000
	maxHeldResultBytes  = 256 << 20
)

// HoldResult stores a held result with the store's current time. It removes results that are older than 30 days. If
// there are more than 1,000 results or 256 MiB, it removes the oldest ones, but never the newest.
func (db *DB) HoldResult(ctx context.Context, r HeldResult) error {
	const step = "keep a result that is held back"
	rules, err := json.Marshal(r.Rules)
	if err != nil {
		return db.newFault(step, drawbridge.InvalidInput, err)
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO held_results (id, at, principal, server, card, method, rules, size, result)
			VALUES ($1, CLOCK, $2, $3, $4, $5, $6, $7, $8)`), r.ID, r.Principal, string(r.Server), r.Card, r.Method, rules, len(r.Result), []byte(r.Result))
		if err != nil {
			return err
		}
		// Do not remove results too early if the clock is ahead. Assume that at most one day has passed since the
		// last pruning of audit records. A confirmed clock counts as such a pruning.
		_, err = tx.ExecContext(ctx, db.expandKeywords(`DELETE FROM held_results WHERE
			(at < CLOCK - $1 AND at < COALESCE((SELECT at FROM prunings WHERE stream = $4), CLOCK) + $5 - $1) OR id IN (SELECT id FROM (
			SELECT id, ROW_NUMBER() OVER newest AS place, SUM(size) OVER newest AS bytes FROM held_results WINDOW newest AS (ORDER BY at DESC, id)
			) AS all_held WHERE place > $2 OR (bytes > $3 AND place > 1))`), heldResultRetention.Milliseconds(), maxHeldResults, maxHeldResultBytes,
			AuditStream, clockJump.Milliseconds())
		return err
	})
}

// HeldResults returns the held results, newest first. The member Result is nil.
func (db *DB) HeldResults(ctx context.Context) ([]HeldResult, error) {
	const step = "read the results that are held back"
	rows, err := db.reader.QueryContext(ctx,
		"SELECT id, at, principal, server, card, method, rules FROM held_results ORDER BY at DESC, id")
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []HeldResult
	for rows.Next() {
		var r HeldResult
		if err := r.scan(rows); err != nil {
			return nil, db.fault(step, err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// HeldResult returns one held result, including the member Result. A fault with code NotFound means that no result
// has this ID.
func (db *DB) HeldResult(ctx context.Context, id string) (r HeldResult, err error) {
	const step = "read a result that is held back"
	row := db.reader.QueryRowContext(ctx,
		"SELECT id, at, principal, server, card, method, rules, result FROM held_results WHERE id = $1", id)
	switch err := r.scan(row, (*[]byte)(&r.Result)); {
	case errors.Is(err, sql.ErrNoRows):
		f := db.newFault(fmt.Sprintf("find %.20q", id), drawbridge.NotFound,
			errors.New("no result is held back by that name"))
		f.Next = "drawbridge shield results lists them"
		return HeldResult{}, f
	case err != nil:
		return HeldResult{}, db.fault(step, err)
	}
	return r, nil
}

// scan reads all columns except the result. The arguments more are destinations for further columns.
func (r *HeldResult) scan(row interface{ Scan(dest ...any) error }, more ...any) error {
	var at int64
	var rules []byte
	if err := row.Scan(append([]any{&r.ID, &at, &r.Principal, &r.Server, &r.Card, &r.Method, &rules},
		more...)...); err != nil {
		return err
	}
	r.At = fromMillis(at)
	return json.Unmarshal(rules, &r.Rules)
}
