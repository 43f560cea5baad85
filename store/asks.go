package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// An Ask is a call that waits for a person. The process that holds the call says again and again that it still does; an ask
// that nobody holds any more is gone.
type Ask struct {
	// ID names it for people; Principal is the caller's.
	ID, Principal string
	// Session tells sessions apart, and is none itself; empty where the caller has none.
	Session string
	// Call stands for this caller's call of this card, as it is defined now, with these arguments; Card for one with any.
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

// An Answer is what a person said to an ask.
type Answer string

// The answers. Waiting is none yet.
const (
	Waiting Answer = ""
	Allowed Answer = "allow"
	Denied  Answer = "deny"
)

// errNotKept says that an ask is not kept.
var errNotKept = errors.New("nothing waits by that name: it was answered, or its call is over")

// Ask keeps an ask for as long as timeout, held by this process for the time of lease. Code RateLimited means that there are
// most of the principal's waiting already, PolicyBlocked that a person said no to the same call while it waited the last time
// and that time is not over.
func (db *DB) Ask(ctx context.Context, a Ask, timeout, lease time.Duration, most int) error {
	const step = "keep what waits for a person"
	return db.write(ctx, step, func(tx *sql.Tx) error {
		// A denied ask stays until its time is over, so that the same call does not come back at once; not until the date of a
		// clock that has been put back.
		if _, err := tx.ExecContext(ctx, db.in(`DELETE FROM asks WHERE ends <= CLOCK OR (held <= CLOCK AND answer <> $1) OR (created > CLOCK AND answer = $1)`), string(Denied)); err != nil {
			return err
		}
		var denied, waiting int
		row := tx.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN answer = $1 AND call_hash = $2 THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN answer = $3 THEN 1 ELSE 0 END), 0) FROM asks WHERE principal = $4`, string(Denied), a.Call, string(Waiting), a.Principal)
		if err := row.Scan(&denied, &waiting); err != nil {
			return err
		}
		switch {
		case denied > 0:
			return db.refusal(step, drawbridge.PolicyBlocked, errors.New("a person has just said no to the same call"))
		case waiting >= most:
			return db.refusal(step, drawbridge.RateLimited, fmt.Errorf("%d calls of the caller wait already", waiting))
		}
		_, err := tx.ExecContext(ctx, db.in(`INSERT INTO asks (id, principal, session, call_hash, card_hash, shown, created, ends, held, answer)
			VALUES ($1, $2, $3, $4, $5, $6, CLOCK, CLOCK + $7, CLOCK + $8, $9)`),
			a.ID, a.Principal, a.Session, a.Call, a.Card, a.Shown, timeout.Milliseconds(), lease.Milliseconds(), string(Waiting))
		return err
	})
}

// AskAnswer gives what a person said to an ask, and who they are. Code NotFound means that it is not kept any more.
func (db *DB) AskAnswer(ctx context.Context, id string) (answer Answer, by string, err error) {
	err = db.reader.QueryRowContext(ctx, "SELECT answer, said_by FROM asks WHERE id = $1", id).Scan(&answer, &by)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Waiting, "", db.notKept(id)
	case err != nil:
		return Waiting, "", db.fault("read an answer", err)
	}
	return answer, by, nil
}

// HoldAsk says that the call of an ask still waits, for the time of lease.
func (db *DB) HoldAsk(ctx context.Context, id string, lease time.Duration) error {
	return db.save(ctx, "hold an ask", "UPDATE asks SET held = CLOCK + $1 WHERE id = $2", lease.Milliseconds(), id)
}

// TakeAsk uses up the answer to an ask: true means that its call may be sent now, and that nobody is told so again. An ask
// whose time is over, or which nobody held, is none.
func (db *DB) TakeAsk(ctx context.Context, id string) (taken bool, err error) {
	err = db.write(ctx, "use an answer", func(tx *sql.Tx) error {
		taken, err = db.changed(ctx, tx, "DELETE FROM asks WHERE id = $1 AND answer = $2 AND ends > CLOCK AND held > CLOCK", id, string(Allowed))
		return err
	})
	return taken && err == nil, err
}

// DropAsk forgets an ask whose call waits no longer, unless a person said no to it.
func (db *DB) DropAsk(ctx context.Context, id string) error {
	return db.save(ctx, "drop an ask", "DELETE FROM asks WHERE id = $1 AND answer <> $2", id, string(Denied))
}

// Asks gives what waits for a person, the oldest first.
func (db *DB) Asks(ctx context.Context) ([]Ask, error) {
	const step = "read what waits for a person"
	rows, err := db.reader.QueryContext(ctx, db.in(`SELECT id, principal, session, call_hash, card_hash, shown, created, ends FROM asks
		WHERE answer = $1 AND ends > CLOCK AND held > CLOCK ORDER BY created, id`), string(Waiting))
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []Ask
	for rows.Next() {
		var a Ask
		var created, ends int64
		if err := rows.Scan(&a.ID, &a.Principal, &a.Session, &a.Call, &a.Card, &a.Shown, &created, &ends); err != nil {
			return nil, db.fault(step, err)
		}
		a.Created, a.Until = moment(created), moment(ends)
		all = append(all, a)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// AnswerAsk says what a person decided, once, and by whom: a second answer comes too late. grant, which may be nil, is given in
// the same step, for the time of lasts; 0 is for ever. Of it ID, Principal, By and Created are filled in. Code NotFound means that nothing
// waits by that name.
func (db *DB) AnswerAsk(ctx context.Context, id string, answer Answer, by string, grant *Grant, lasts time.Duration) error {
	const step = "answer an ask"
	return db.write(ctx, step, func(tx *sql.Tx) error {
		ok, err := db.changed(ctx, tx, "UPDATE asks SET answer = $1, said_by = $4 WHERE id = $2 AND answer = $3 AND ends > CLOCK AND held > CLOCK",
			string(answer), id, string(Waiting), by)
		switch {
		case err != nil:
			return err
		case !ok:
			return db.notKept(id)
		case grant == nil:
			return nil
		}
		// Those that have ended go when others come: each call that a person would be asked about looks through all.
		if _, err := tx.ExecContext(ctx, db.in("DELETE FROM grants WHERE ends <> 0 AND ends <= CLOCK")); err != nil {
			return err
		}
		forCard := 0
		if grant.ForCard {
			forCard = 1
		}
		_, err = tx.ExecContext(ctx, db.in(`INSERT INTO grants (id, principal, session, subject, for_card, shown, created, ends, uses, said_by)
			SELECT id, principal, CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($6 AS BIGINT), CAST($3 AS BLOB), CLOCK,
			CASE WHEN CAST($4 AS BIGINT) = 0 THEN 0 ELSE CLOCK + CAST($4 AS BIGINT) END, 0, said_by FROM asks WHERE id = $5`),
			grant.Session, grant.Subject, grant.Shown, lasts.Milliseconds(), id, forCard)
		return err
	})
}

// grantNow is what a grant must be to count. One for a time that was given later than now was given by a clock that has been put
// back since: when its time is over nobody knows.
const grantNow = " (ends = 0 OR (ends > CLOCK AND created <= CLOCK)) "

// UseGrant finds a grant that lets a call through, and counts it there: used means that the call may be sent now, and of the
// grant there are ID and By. Of an Ask it looks at Principal, Session, Call and Card. Where there is no grant it only reads.
func (db *DB) UseGrant(ctx context.Context, a Ask) (g Grant, used bool, err error) {
	err = db.reader.QueryRowContext(ctx, db.in(`SELECT id, said_by FROM grants WHERE principal = $1 AND session IN ('', $2) AND subject IN ($3, $4)
		AND`+grantNow+`ORDER BY id LIMIT 1`), a.Principal, a.Session, a.Call, a.Card).Scan(&g.ID, &g.By)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Grant{}, false, nil
	case err != nil:
		return Grant{}, false, db.fault("read the grants", err)
	}
	err = db.write(ctx, "use a grant", func(tx *sql.Tx) error {
		used, err = db.changed(ctx, tx, "UPDATE grants SET uses = uses + 1 WHERE id = $1 AND"+grantNow, g.ID)
		return err
	})
	return g, used && err == nil, err
}

// Grants gives the grants that count, the oldest first.
func (db *DB) Grants(ctx context.Context) ([]Grant, error) {
	const step = "read the grants"
	rows, err := db.reader.QueryContext(ctx, db.in("SELECT id, principal, session, subject, for_card, shown, created, ends, uses, said_by FROM grants WHERE"+grantNow+"ORDER BY created, id"))
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []Grant
	for rows.Next() {
		var g Grant
		var created, ends, forCard int64
		if err := rows.Scan(&g.ID, &g.Principal, &g.Session, &g.Subject, &forCard, &g.Shown, &created, &ends, &g.Uses, &g.By); err != nil {
			return nil, db.fault(step, err)
		}
		g.ForCard, g.Created, g.Until = forCard == 1, moment(created), moment(ends)
		all = append(all, g)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// Revoke takes a grant back. It says false where there is none by that name. Grants that have ended go with it.
func (db *DB) Revoke(ctx context.Context, id string) (revoked bool, err error) {
	err = db.write(ctx, "revoke a grant", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, db.in("DELETE FROM grants WHERE NOT"+grantNow)); err != nil {
			return err
		}
		revoked, err = db.changed(ctx, tx, "DELETE FROM grants WHERE id = $1", id)
		return err
	})
	return revoked && err == nil, err
}

// changed carries out a statement and says whether it changed anything.
func (db *DB) changed(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	done, err := tx.ExecContext(ctx, db.in(statement), args...)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

func (db *DB) notKept(id string) error {
	f := db.refusal(fmt.Sprintf("find %.20q", id), drawbridge.NotFound, errNotKept)
	f.Next = "drawbridge ask lists what waits"
	return f
}
