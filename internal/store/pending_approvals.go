package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
)

// A PendingApproval is an approval request for a call that waits for a person's answer. The process in which the call
// waits extends the lease of the request repeatedly. If that process ends, the lease expires, and the request is
// treated as deleted.
type PendingApproval struct {
	// ID is the name that people use for the request. Principal identifies the caller.
	ID, Principal string
	// Session identifies the caller's session; empty if the caller has none.
	Session string
	// Call is a hash of the principal, the card with its current definition, and the arguments. Card is a hash of
	// the same values without the arguments.
	Call, Card string
	// Shown describes the call for the person who answers, in JSON. The store does not interpret it.
	Shown []byte
	// Created is the time at which the call began to wait, and Until the time at which the request expires.
	Created, Until time.Time
}

// A Grant allows calls that would otherwise need a person's approval.
type Grant struct {
	// ID is the name that people use for the grant; it equals the ID of the approval request with whose answer the
	// grant was created. If the answer created several grants, "-1", "-2" and so on follow the ID of the request.
	// Principal is the caller to whom the grant applies.
	ID, Principal string
	// Session is the only session that the grant applies to; empty means all sessions.
	Session string
	// Subject determines which calls the grant allows. If ForCard is set, it is the Card of their PendingApproval,
	// otherwise the Call.
	Subject string
	ForCard bool
	Shown   []byte
	// Max is the maximum number of calls; 0 means that there is none. A grant with a maximum is for calls of a script:
	// only UseCountedGrant uses it. Subject then determines the script and the tool, and Pattern describes the arguments
	// that the grant allows. The store does not interpret Pattern.
	Max     int
	Pattern string
	// Created is the time at which the grant was created, and Until the time at which it ends; zero means never.
	Created, Until time.Time
	// Uses is the number of calls that the grant has allowed. In a new grant it is the number of calls that the answer
	// itself allows, if Max is set.
	Uses int
	// By names the person who created the grant, and the command used.
	By string
}

// An ApprovalAnswer is a person's answer to a pending approval.
type ApprovalAnswer string

// The possible answers. AnswerWaiting means that there is no answer yet.
const (
	AnswerWaiting ApprovalAnswer = ""
	AnswerAllowed ApprovalAnswer = "allow"
	AnswerDenied  ApprovalAnswer = "deny"
)

// errNotPending is the error for an approval request that does not exist, has expired, or is already answered.
var errNotPending = errors.New("nothing waits by that name: it was answered, or its call is over")

// AddPendingApproval stores an approval request. The request expires after timeout, and its lease expires after the
// duration lease unless it is renewed. A fault with code RateLimited means that most or more requests of the same
// principal are already waiting. A fault with code PolicyBlocked means that a person denied the same call, and that
// the denied request has not expired yet. If there is a request with the same ID for the same call, its lease is
// extended, and its answer stays.
func (db *DB) AddPendingApproval(ctx context.Context, a PendingApproval, timeout, lease time.Duration, most int) error {
	const step = "keep what waits for a person"
	if _, err := db.highestTime(ctx); err != nil {
		return err
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		// A denied request is stored until it expires, so that the same call does not cause a new request at once. A
		// denied request created later than now was created before the clock was set back, and is removed.
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
		added, err := db.execChanged(ctx, tx, `INSERT INTO asks (id, principal, session, call_hash, card_hash, shown, created, ends, held, answer)
			VALUES ($1, $2, $3, $4, $5, $6, CLOCK, CLOCK + $7, CLOCK + $8, $9)
			ON CONFLICT (id) DO UPDATE SET held = excluded.held, session = excluded.session
			WHERE asks.principal = excluded.principal AND asks.call_hash = excluded.call_hash`,
			a.ID, a.Principal, a.Session, a.Call, a.Card, a.Shown, timeout.Milliseconds(), lease.Milliseconds(),
			string(AnswerWaiting))
		if err == nil && !added {
			err = db.newFault(step, drawbridge.InvalidInput, fmt.Errorf("another call waits as %.20q", a.ID))
		}
		return err
	})
}

// PendingAnswer returns the answer to an approval request, and the person who answered. The answer is AnswerWaiting
// if there is no answer yet. A fault with code NotFound means that the request no longer exists.
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

// RenewPendingApproval extends the lease of an approval request: it now expires after the duration lease.
func (db *DB) RenewPendingApproval(ctx context.Context, id string, lease time.Duration) error {
	return db.execWrite(ctx, "hold an ask", "UPDATE asks SET held = CLOCK + $1 WHERE id = $2", lease.Milliseconds(), id)
}

// UseApproval uses the approval of a request for one call. If a person allowed the request, UseApproval deletes the
// request and returns true, and the call may be sent now. Another call of UseApproval for the same request returns
// false. UseApproval also returns false if the request was not allowed, or if the request or its lease has expired.
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

// DropPendingApproval deletes the approval request of a call that no longer waits. With keepDenied, a denied request is
// stored until it expires, so that the same call is refused until then.
func (db *DB) DropPendingApproval(ctx context.Context, id string, keepDenied bool) error {
	kept := AnswerDenied
	if !keepDenied {
		kept = "none"
	}
	return db.execWrite(ctx, "drop an ask", "DELETE FROM asks WHERE id = $1 AND answer <> $2", id, string(kept))
}

// PendingApprovals returns the approval requests that are not expired and have no answer, oldest first.
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

// AnswerPendingApproval stores a person's answer to an approval request, and the person's name. A fault with code
// NotFound means that no request with this ID waits for an answer, for example because it is already answered.
//
// The grants are stored in the same transaction. They end after the duration lasts; 0 means never. Their ID, Principal
// and By are taken from the request, and Created is the current time.
func (db *DB) AnswerPendingApproval(ctx context.Context, id string, answer ApprovalAnswer, by string, grants []Grant,
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
		case len(grants) == 0:
			return nil
		}
		// Expired grants are deleted here, because each call that needs approval searches all grants.
		if _, err := tx.ExecContext(ctx,
			db.expandKeywords("DELETE FROM grants WHERE ends <> 0 AND ends <= CLOCK")); err != nil {
			return err
		}
		for i, g := range grants {
			grantID := id
			if len(grants) > 1 {
				grantID = fmt.Sprintf("%s-%d", id, i+1)
			}
			if err := db.addGrant(ctx, tx, id, grantID, g, lasts); err != nil {
				return err
			}
		}
		return nil
	})
}

// addGrant stores a grant with the ID grantID, for the caller of the approval request ask.
func (db *DB) addGrant(ctx context.Context, tx *sql.Tx, ask, grantID string, g Grant, lasts time.Duration) error {
	forCard, uses := 0, 0
	if g.ForCard {
		forCard = 1
	}
	if g.Max > 0 {
		uses = g.Uses
	}
	_, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO grants (id, principal, session, subject, for_card, shown, created, ends, uses, said_by,
			max_uses, pattern)
		SELECT CAST($7 AS TEXT), principal, CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($6 AS BIGINT), CAST($3 AS BLOB), CLOCK,
			CASE WHEN CAST($4 AS BIGINT) = 0 THEN 0 ELSE CLOCK + CAST($4 AS BIGINT) END, CAST($8 AS BIGINT), said_by,
			CAST($9 AS BIGINT), CAST($10 AS TEXT) FROM asks WHERE id = $5`),
		g.Session, g.Subject, g.Shown, lasts.Milliseconds(), ask, forCard, grantID, uses, g.Max, g.Pattern)
	return err
}

// validGrantSQL is the SQL condition for a valid grant. A grant that ends at some time is not valid if its creation
// time is later than now. The clock was then set back, so it is unknown whether the grant has ended.
const validGrantSQL = " (ends = 0 OR (ends > CLOCK AND created <= CLOCK)) "

// UseGrant searches for a grant that allows a call, and counts one use of the grant. a describes the call: its
// Principal, Session, Call and Card are compared with the grants. If used is true, the call may be sent now, and g
// contains the grant's ID and By. If no grant matches, used is false, and UseGrant writes nothing.
func (db *DB) UseGrant(ctx context.Context, a PendingApproval) (g Grant, used bool, err error) {
	if _, err := db.highestTime(ctx); err != nil {
		return Grant{}, false, err
	}
	err = db.reader.QueryRowContext(ctx, db.expandKeywords(`SELECT id, said_by FROM grants WHERE principal = $1 AND session IN ('', $2) AND subject IN ($3, $4)
		AND max_uses = 0 AND`+validGrantSQL+`ORDER BY id LIMIT 1`), a.Principal, a.Session, a.Call, a.Card).Scan(&g.ID, &g.By)
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

// UseCountedGrant counts one use of a grant with a maximum. g must be a result of CountedGrants. If used is true, the
// call may be sent now. It is false if the grant has allowed Max calls, has ended, or was revoked.
func (db *DB) UseCountedGrant(ctx context.Context, g Grant) (used bool, err error) {
	if _, err := db.highestTime(ctx); err != nil {
		return false, err
	}
	err = db.inTransaction(ctx, "use a grant", func(tx *sql.Tx) error {
		used, err = db.execChanged(ctx, tx, `UPDATE grants SET uses = uses + 1
			WHERE id = $1 AND subject = $2 AND pattern = $3 AND uses < max_uses AND`+validGrantSQL,
			g.ID, g.Subject, g.Pattern)
		return err
	})
	return used && err == nil, err
}

// CountedGrants returns the valid grants with a maximum for the subject, also those that have allowed their maximum,
// oldest first. session is the hash of the caller's session; empty if the caller has none.
func (db *DB) CountedGrants(ctx context.Context, principal, session, subject string) ([]Grant, error) {
	return db.readGrants(ctx, "max_uses > 0 AND principal = $1 AND session IN ('', $2) AND subject = $3 AND", principal,
		session, subject)
}

// Grants returns the valid grants, oldest first.
func (db *DB) Grants(ctx context.Context) ([]Grant, error) { return db.readGrants(ctx, "") }

// readGrants returns the valid grants that meet a condition in SQL, which is empty or ends with AND.
func (db *DB) readGrants(ctx context.Context, condition string, args ...any) ([]Grant, error) {
	const step = "read the grants"
	if _, err := db.highestTime(ctx); err != nil {
		return nil, err
	}
	rows, err := db.reader.QueryContext(ctx, db.expandKeywords(`SELECT id, principal, session, subject, for_card, shown, created, ends, uses, said_by,
		max_uses, pattern FROM grants WHERE `+condition+validGrantSQL+"ORDER BY created, id"), args...)
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []Grant
	for rows.Next() {
		var g Grant
		var created, ends, forCard int64
		if err := rows.Scan(&g.ID, &g.Principal, &g.Session, &g.Subject, &forCard, &g.Shown, &created, &ends, &g.Uses,
			&g.By, &g.Max, &g.Pattern); err != nil {
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

// RevokeGrant deletes a grant and reports whether it existed. If id is the ID of an approval request, RevokeGrant deletes
// all grants that the answer to the request created. It also deletes all expired grants.
func (db *DB) RevokeGrant(ctx context.Context, id string) (revoked bool, err error) {
	err = db.inTransaction(ctx, "revoke a grant", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, db.expandKeywords("DELETE FROM grants WHERE NOT"+validGrantSQL)); err != nil {
			return err
		}
		revoked, err = db.execChanged(ctx, tx, "DELETE FROM grants WHERE id = $1 OR substr(id, 1, $2) = $3", id,
			utf8.RuneCountInString(id)+1, id+"-")
		return err
	})
	return revoked && err == nil, err
}

// execChanged executes a statement and reports whether it changed a row.
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
