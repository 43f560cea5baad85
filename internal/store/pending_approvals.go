package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// An PendingApproval is a call that waits for a person. The process that holds the call says again and again that it
// still does; an ask that nobody holds any more is gone.
type PendingApproval struct {
	// ID names it for people; Principal is the caller's.
	ID, Principal string
	// Session tells sessions apart, and is none itself; empty where the caller has none.
	Session string
	// Call stands for this caller's call of this card, as it is defined now, with these arguments; Card for one with
	// any.
	Call, Card string
	// Shown is what a person is shown, as JSON. The store does not read it.
	Shown []byte
	// Created and Until are its time.
	Created, Until time.Time
}

// A Grant lets calls through that a guard would have a person asked about.
type Grant struct {
	// ID names it for people; it is the one of the ask that it was given for.
	ID, Principal string
	// Session is the only one that it counts in; empty for all.
	Session string
	// Subject is the Call of an Ask, or its Card where ForCard says so.
	Subject string
	ForCard bool
	Shown   []byte
	// Created is when it was given, Until when it ends: the zero time is never.
	Created, Until time.Time
	// Uses says how many calls it has let through.
	Uses int
	// By is who gave it, and where.
	By string
}

// An ApprovalAnswer is what a person said to an ask.
type ApprovalAnswer string

// The answers. Waiting is none yet.
const (
	AnswerWaiting ApprovalAnswer = ""
	AnswerAllowed ApprovalAnswer = "allow"
	AnswerDenied  ApprovalAnswer = "deny"
)

// errNotPending says that an ask is not kept.
var errNotPending = errors.New("nothing waits by that name: it was answered, or its call is over")

// AddPendingApproval keeps an ask for as long as timeout, held by this process for the time of lease. Code RateLimited
// means that there are most of the principal's waiting already, PolicyBlocked that a person said no to the same call
// while it waited the last time and that time is not over.
func (db *DB) AddPendingApproval(ctx context.Context, a PendingApproval, timeout, lease time.Duration, most int) error {
	const step = "keep what waits for a person"
	if _, err := db.highestTime(ctx); err != nil {
		return err
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		// A denied ask stays until its time is over, so that the same call does not come back at once; not until the
		// date of a clock that has been put back.
		if _, err := tx.ExecContext(ctx,
			db.expandKeywords(
				`DELETE FROM asks WHERE ends <= CLOCK OR (held <= CLOCK AND answer <> $1) OR (created > CLOCK AND answer = $1)`), string(AnswerDenied)); err != nil {
			return err
		}
		var denied, waiting int
		row := tx.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN answer = $1 AND call_hash = $2 THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN answer = $3 THEN 1 ELSE 0 END), 0) FROM asks WHERE principal = $4`, string(AnswerDenied), a.Call, string(AnswerWaiting), a.Principal)
		if err := row.Scan(&denied, &waiting); err != nil {
			return err
		}
		switch {
		case denied > 0:
			return db.newFault(step, drawbridge.PolicyBlocked, errors.New("a person has just said no to the same call"))
		case waiting >= most:
			return db.newFault(step, drawbridge.RateLimited, fmt.Errorf("%d calls of the caller wait already", waiting))
		}
		_, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO asks (id, principal, session, call_hash, card_hash, shown, created, ends, held, answer)
			VALUES ($1, $2, $3, $4, $5, $6, CLOCK, CLOCK + $7, CLOCK + $8, $9)`),
			a.ID, a.Principal, a.Session, a.Call, a.Card, a.Shown, timeout.Milliseconds(), lease.Milliseconds(),
			string(AnswerWaiting))
		return err
	})
}

// PendingAnswer gives what a person said to an ask, and who they are. Code NotFound means that it is not kept any more.
func (db *DB) PendingAnswer(ctx context.Context, id string) (answer ApprovalAnswer, by string, err error) {
	err = db.reader.QueryRowContext(ctx, "SELECT answer, said_by FROM asks WHERE id = $1", id).Scan(&answer, &by)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return AnswerWaiting, "", db.notPendingFault(id)
	case err != nil:
		return AnswerWaiting, "", db.fault("read an answer", err)
	}
	return answer, by, nil
}

// RenewPendingApproval says that the call of an ask still waits, for the time of lease.
func (db *DB) RenewPendingApproval(ctx context.Context, id string, lease time.Duration) error {
	return db.execWrite(ctx, "hold an ask", "UPDATE asks SET held = CLOCK + $1 WHERE id = $2", lease.Milliseconds(), id)
}

// UseApproval uses up the answer to an ask: true means that its call may be sent now, and that nobody is told so
// again. An ask whose time is over, or which nobody held, is none.
func (db *DB) UseApproval(ctx context.Context, id string) (taken bool, err error) {
	if _, err := db.highestTime(ctx); err != nil {
		return false, err
	}
	err = db.inTransaction(ctx, "use an answer", func(tx *sql.Tx) error {
		taken, err = db.execChanged(ctx, tx,
			"DELETE FROM asks WHERE id = $1 AND answer = $2 AND ends > CLOCK AND held > CLOCK", id,
			string(AnswerAllowed))
		return err
	})
	return taken && err == nil, err
}

// DropPendingApproval forgets an ask whose call waits no longer, unless a person said no to it.
func (db *DB) DropPendingApproval(ctx context.Context, id string) error {
	return db.execWrite(ctx, "drop an ask", "DELETE FROM asks WHERE id = $1 AND answer <> $2", id, string(AnswerDenied))
}

// PendingApprovals gives what waits for a person, the oldest first.
func (db *DB) PendingApprovals(ctx context.Context) ([]PendingApproval, error) {
	const step = "read what waits for a person"
	if _, err := db.highestTime(ctx); err != nil {
		return nil, err
	}
	rows, err := db.reader.QueryContext(ctx, db.expandKeywords(`SELECT id, principal, session, call_hash, card_hash, shown, created, ends FROM asks
		WHERE answer = $1 AND ends > CLOCK AND held > CLOCK ORDER BY created, id`), string(AnswerWaiting))
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []PendingApproval
	for rows.Next() {
		var a PendingApproval
		var created, ends int64
		if err := rows.Scan(&a.ID, &a.Principal, &a.Session, &a.Call, &a.Card, &a.Shown, &created, &ends); err != nil {
			return nil, db.fault(step, err)
		}
		a.Created, a.Until = fromMillis(created), fromMillis(ends)
		all = append(all, a)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// AnswerPendingApproval says what a person decided, once, and by whom: a second answer comes too late. grant, which
// may be nil, is given in the same step, for the time of lasts; 0 is for ever. Of it ID, Principal, By and Created are
// filled in. Code NotFound means that nothing waits by that name.
func (db *DB) AnswerPendingApproval(ctx context.Context, id string, answer ApprovalAnswer, by string, grant *Grant,
	lasts time.Duration) error {
	const step = "answer an ask"
	if _, err := db.highestTime(ctx); err != nil {
		return err
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		ok, err := db.execChanged(ctx, tx,
			"UPDATE asks SET answer = $1, said_by = $4 WHERE id = $2 AND answer = $3 AND ends > CLOCK AND held > CLOCK",
			string(answer), id, string(AnswerWaiting), by)
		switch {
		case err != nil:
			return err
		case !ok:
			return db.notPendingFault(id)
		case grant == nil:
			return nil
		}
		// Those that have ended go when others come: each call that a person would be asked about looks through all.
		if _, err := tx.ExecContext(ctx,
			db.expandKeywords("DELETE FROM grants WHERE ends <> 0 AND ends <= CLOCK")); err != nil {
			return err
		}
		forCard := 0
		if grant.ForCard {
			forCard = 1
		}
		_, err = tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO grants (id, principal, session, subject, for_card, shown, created, ends, uses, said_by)
			SELECT id, principal, CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($6 AS BIGINT), CAST($3 AS BLOB), CLOCK,
			CASE WHEN CAST($4 AS BIGINT) = 0 THEN 0 ELSE CLOCK + CAST($4 AS BIGINT) END, 0, said_by FROM asks WHERE id = $5`),
			grant.Session, grant.Subject, grant.Shown, lasts.Milliseconds(), id, forCard)
		return err
	})
}

// validGrantSQL is what a grant must be to count. One for a time that was given later than now was given by a clock
// that has been put back since: when its time is over nobody knows.
const validGrantSQL = " (ends = 0 OR (ends > CLOCK AND created <= CLOCK)) "

// UseGrant finds a grant that lets a call through, and counts it there: used means that the call may be sent now, and
// of the grant there are ID and By. Of an Ask it looks at Principal, Session, Call and Card. Where there is no grant
// it only reads.
func (db *DB) UseGrant(ctx context.Context, a PendingApproval) (g Grant, used bool, err error) {
	if _, err := db.highestTime(ctx); err != nil {
		return Grant{}, false, err
	}
	err = db.reader.QueryRowContext(ctx, db.expandKeywords(`SELECT id, said_by FROM grants WHERE principal = $1 AND session IN ('', $2) AND subject IN ($3, $4)
		AND`+validGrantSQL+`ORDER BY id LIMIT 1`), a.Principal, a.Session, a.Call, a.Card).Scan(&g.ID, &g.By)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Grant{}, false, nil
	case err != nil:
		return Grant{}, false, db.fault("read the grants", err)
	}
	err = db.inTransaction(ctx, "use a grant", func(tx *sql.Tx) error {
		used, err = db.execChanged(ctx, tx, "UPDATE grants SET uses = uses + 1 WHERE id = $1 AND"+validGrantSQL, g.ID)
		return err
	})
	return g, used && err == nil, err
}

// Grants gives the grants that count, the oldest first.
func (db *DB) Grants(ctx context.Context) ([]Grant, error) {
	const step = "read the grants"
	if _, err := db.highestTime(ctx); err != nil {
		return nil, err
	}
	rows, err := db.reader.QueryContext(ctx,
		db.expandKeywords(
			"SELECT id, principal, session, subject, for_card, shown, created, ends, uses, said_by FROM grants WHERE"+
				validGrantSQL+"ORDER BY created, id"))
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []Grant
	for rows.Next() {
		var g Grant
		var created, ends, forCard int64
		if err := rows.Scan(&g.ID, &g.Principal, &g.Session, &g.Subject, &forCard, &g.Shown, &created, &ends, &g.Uses,
			&g.By); err != nil {
			return nil, db.fault(step, err)
		}
		g.ForCard, g.Created, g.Until = forCard == 1, fromMillis(created), fromMillis(ends)
		all = append(all, g)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// RevokeGrant takes a grant back. It says false where there is none by that name. Grants that have ended go with it.
func (db *DB) RevokeGrant(ctx context.Context, id string) (revoked bool, err error) {
	err = db.inTransaction(ctx, "revoke a grant", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, db.expandKeywords("DELETE FROM grants WHERE NOT"+validGrantSQL)); err != nil {
			return err
		}
		revoked, err = db.execChanged(ctx, tx, "DELETE FROM grants WHERE id = $1", id)
		return err
	})
	return revoked && err == nil, err
}

// execChanged carries out a statement and says whether it changed anything.
func (db *DB) execChanged(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	done, err := tx.ExecContext(ctx, db.expandKeywords(statement), args...)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

func (db *DB) notPendingFault(id string) error {
	f := db.newFault(fmt.Sprintf("find %.20q", id), drawbridge.NotFound, errNotPending)
	f.Next = "drawbridge ask lists what waits"
	return f
}
