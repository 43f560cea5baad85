package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// Records are removed by age only if the clock can be trusted, because a removed record is lost for all processes
// that share the store. A pruning is a removal of old records.
const (
	// clockSlack is the maximum permitted difference between the clocks of the process and the store.
	clockSlack = 5 * time.Minute
	// clockJump is the largest normal difference between the store's clock and the time of the last pruning. A
	// greater difference is called a jump: no record is removed by age until the jump is confirmed.
	clockJump = 24 * time.Hour
	// A jump is confirmed if a process starts between confirmFrom and confirmUntil after the jump was found. For a
	// short jump, the second limit is earlier, see sinceJump.
	confirmFrom, confirmUntil = time.Hour, 31 * 24 * time.Hour
	// A jump ahead of at most KeepFor / usualPart causes no warning, because the store may have been unused for that
	// time. It must still be confirmed.
	usualPart = 10
	// rememberEvery is the time by which the clock must advance before the time of the last pruning is stored again.
	rememberEvery = time.Minute
	// clockNote is the prefix of the ID of an audit note about a jump.
	clockNote = "clock-"
)

// IsClockJump reports whether an audit record is the note that noteJump writes: the store's clock jumped, and
// therefore no records were removed by age.
func IsClockJump(r audit.Record) bool {
	return r.Kind == audit.Note && r.Bytes == 0 && strings.HasPrefix(r.ID, clockNote)
}

// A pruning is the stored state of the last removal of records by age. Times are in milliseconds since 1970 by the
// store's clock.
type pruning struct {
	// now is the current time. at is the time of the last pruning; 0 means none.
	now, at int64
	// jumpAt is the time at which a jump was found; 0 means none. jumpBy is the process that found it.
	jumpAt int64
	jumpBy string
}

// ahead returns the time from the last pruning to now by the store's clock; it is negative if the clock went back.
func (p pruning) ahead() time.Duration { return time.Duration(p.now-p.at) * time.Millisecond }

// sinceJump returns the time since the jump was found. ok is false if no jump was found. ok is also false if the jump
// was found so long ago that the clock must have jumped a second time.
func (p pruning) sinceJump() (d time.Duration, ok bool) {
	d = time.Duration(p.now-p.jumpAt) * time.Millisecond
	jumped := time.Duration(min(max(p.jumpAt-p.at, p.at-p.jumpAt), confirmUntil.Milliseconds())) * time.Millisecond
	return d, p.jumpAt != 0 && d >= 0 && d <= min(confirmUntil, 2*jumped+clockJump)
}

// confirmed reports whether a process that starts now confirms the jump: the jump was found at least confirmFrom
// ago, and not too long ago.
func (p pruning) confirmed() bool {
	d, ok := p.sinceJump()
	return ok && d >= confirmFrom
}

// retentionStart returns the time, in milliseconds since 1970 by the store's clock; records before this time are too
// old. It returns 0 if no record may be removed by age: there is no limit, or the clock cannot be trusted.
func (a *AuditWriter) retentionStart(ctx context.Context) (int64, error) {
	var p pruning
	err := a.db.reader.QueryRowContext(ctx, a.db.expandKeywords(`SELECT CLOCK, COALESCE(MAX(at), 0), COALESCE(MAX(jump_at), 0),
		COALESCE(MAX(jump_by), '') FROM prunings WHERE stream = $1`), AuditStream).Scan(&p.now, &p.at, &p.jumpAt, &p.jumpBy)
	if err != nil {
		return 0, err
	}
	off := a.o.Now().Sub(fromMillis(p.now))
	if off.Abs() > clockSlack {
		if a.o.KeepFor <= 0 {
			return 0, nil
		}
		a.warnOnce("no records are removed by age: the clocks of this machine and of the store differ",
			"ahead_by", off.Round(time.Second).String())
		return 0, nil
	}
	if p.at == 0 {
		return 0, a.db.execWrite(ctx, "remember the time", `INSERT INTO prunings (stream, at) VALUES ($1, $2)
			ON CONFLICT (stream) DO NOTHING`, AuditStream, p.now)
	}
	before := int64(0)
	if a.o.KeepFor > 0 {
		before = p.now - a.o.KeepFor.Milliseconds()
	}
	first := !a.judged
	a.judged = true
	switch {
	case p.ahead() > clockJump:
		tooOld, err := a.hasOlder(ctx, before)
		if err != nil {
			return 0, err
		}
		if tooOld && !(first && p.confirmed()) {
			return 0, a.hold(ctx, p)
		}
	case p.ahead() < -clockJump:
		if !(first && p.confirmed()) {
			return 0, a.hold(ctx, p)
		}
	}
	a.warned = ""
	return before, a.accept(ctx, p)
}

// hasOlder reports whether the first stored audit record of a chain is older than the given time.
func (a *AuditWriter) hasOlder(ctx context.Context, before int64) (older bool, err error) {
	streams, err := a.db.auditChains(ctx)
	if err != nil {
		return false, err
	}
	for _, stream := range streams {
		for _, query := range []string{"SELECT at < $2 FROM audit_blocks WHERE stream = $1 ORDER BY first LIMIT 1",
			"SELECT at < $2 FROM audit WHERE stream = $1 ORDER BY seq LIMIT 1"} {
			err := a.db.reader.QueryRowContext(ctx, query, stream, before).Scan(&older)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return false, err
			}
			if older {
				return true, nil
			}
		}
	}
	return false, nil
}

// accept is called if the store's clock is trusted. It stores the current time as the time of the last pruning,
// unless another process has changed the stored time meanwhile. If the clock went back and this was confirmed, accept
// also replaces the store's highest time by the current time.
func (a *AuditWriter) accept(ctx context.Context, p pruning) error {
	back := p.ahead() < -clockJump
	if p.jumpAt == 0 && !back && p.ahead() < rememberEvery {
		return nil
	}
	at := p.now
	if !back {
		at = max(p.at, p.now)
	}
	return a.db.inTransaction(ctx, "remember the time", func(tx *sql.Tx) error {
		changed, err := a.db.execChanged(ctx, tx, `UPDATE prunings SET at = $1, jump_at = 0, jump_by = ''
			WHERE stream = $2 AND at = $3`, at, AuditStream, p.at)
		if err != nil || !changed || !back {
			return err
		}
		_, err = tx.ExecContext(ctx, a.db.expandKeywords("UPDATE store_clock SET highest = CLOCK"))
		return err
	})
}

// hold is called instead of accept if the clock jumped and the jump is not confirmed. It stores the jump, unless
// another process already did, and logs a warning.
func (a *AuditWriter) hold(ctx context.Context, p pruning) error {
	usual := p.ahead() > 0 && p.ahead() <= a.o.KeepFor/usualPart
	if _, known := p.sinceJump(); !known {
		noted, err := a.noteJump(ctx, p, !usual)
		if err != nil || !noted {
			return err
		}
	}
	if usual {
		return nil
	}
	side := "after"
	if p.ahead() < 0 {
		side = "before"
	}
	a.warnOnce("no records are removed by age: the store's clock is more than a day "+side+" the last removal; "+
		"if the clock is right: drawbridge audit confirm-clock, or start Drawbridge again in an hour or later",
		"clock", fromMillis(p.now).Format(time.RFC3339), "last", fromMillis(p.at).Format(time.RFC3339))
	return nil
}

// noteJump stores a jump of the clock. If onRecord is set, it also writes a note to the audit. It returns false if
// another process has already changed the stored state.
func (a *AuditWriter) noteJump(ctx context.Context, p pruning, onRecord bool) (noted bool, err error) {
	r := audit.Record{ID: clockNote + a.start, Kind: audit.Note, At: a.o.Now(), Reason: fmt.Sprintf(
		"no records were removed by age: the store's clock went from %s to %s since the last removal",
		fromMillis(p.at).Format(time.RFC3339), fromMillis(p.now).Format(time.RFC3339))}
	body := a.o.Rules.AppendRecord(nil, &r)
	err = a.db.inTransaction(ctx, "remember that the clock jumped", func(tx *sql.Tx) error {
		changed, err := tx.ExecContext(ctx, `UPDATE prunings SET jump_at = $1, jump_by = $2
			WHERE stream = $3 AND at = $4 AND jump_at = $5 AND jump_by = $6`,
			p.now, a.start, AuditStream, p.at, p.jumpAt, p.jumpBy)
		if err != nil {
			return err
		}
		n, err := changed.RowsAffected()
		if noted = n == 1; err != nil || !noted || !onRecord {
			return err
		}
		var after string
		return a.db.appendAudit(ctx, tx, &a.chain, []ledger.Record{auditLedgerRecord(r.Kind, r.ID, body)}, &after)
	})
	return noted, err
}

// warnOnce logs a warning, unless its text equals that of the previous warning.
func (a *AuditWriter) warnOnce(text string, args ...any) {
	if a.warned != text {
		a.o.Logger.Warn(text, args...)
	}
	a.warned = text
}
