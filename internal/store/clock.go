package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// clockCheckInterval is the minimum time between two comparisons of the store's clock with the highest time.
	clockCheckInterval = time.Second
	// clockResolution is the time by which the clock must advance before the highest time is stored again.
	clockResolution = 5 * time.Second
	// usualGap is the time for which a store may be unused before ClockState.Jump describes the difference as a jump
	// of the clock.
	usualGap = 9 * 24 * time.Hour
)

// errClocksDiffer is the error of ConfirmClock if the clocks of the machine and of the store differ.
var errClocksDiffer = errors.New("the clocks of this machine and of the store differ")

// A clockFloor caches, for this process, the highest time that the store's clock has shown. Expiry is checked against
// the highest time, so that expired data remains expired if the clock is set back.
type clockFloor struct {
	mu        sync.Mutex
	checkedAt time.Time
	highest   time.Time
	// unsaved is a later time that this process has read but could not store.
	unsaved time.Time
}

// get returns the cached highest time, and reports whether the clock must be read again.
func (f *clockFloor) get() (highest time.Time, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.highest, f.checkedAt.IsZero() || time.Since(f.checkedAt) >= clockCheckInterval
}

// set caches the highest stored time, and a later time that could not be stored (zero if there is none). It returns
// the later of the two.
func (f *clockFloor) set(highest, unsaved time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unsaved = latest(f.unsaved, unsaved); !unsaved.IsZero() {
		highest = latest(highest, f.unsaved)
	} else {
		f.unsaved = time.Time{}
	}
	f.highest, f.checkedAt = highest, time.Now()
	return highest
}

// unsavedAfter returns the cached time that could not be stored, if it is later than highest. Otherwise it returns
// the zero time.
func (f *clockFloor) unsavedAfter(highest time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unsaved.After(highest) {
		return f.unsaved
	}
	return time.Time{}
}

// expirySteps are the statements that delete or mark all rows that have expired by the store's clock. These rows
// remain expired if the clock goes back later.
var expirySteps = []string{
	"DELETE FROM grants WHERE ends <> 0 AND ends <= CLOCK",
	"UPDATE clients SET ended = 1 WHERE ended = 0 AND expires <> 0 AND expires <= CLOCK",
	"UPDATE asks SET ends = 0 WHERE ends <> 0 AND ends <= CLOCK",
	"DELETE FROM script_runs WHERE ends <= CLOCK",
}

// highestTime returns the highest time that the store's clock has shown in any process. If the clock has advanced by
// at least clockResolution, highestTime first stores the new time and marks expired rows. If that fails, it uses the
// new time in this process only, and returns no error.
func (db *DB) highestTime(ctx context.Context) (time.Time, error) {
	highest, due := db.floor.get()
	if !due {
		return highest, nil
	}
	const step = "read the highest time"
	now, highest, err := db.readClock(ctx)
	if err != nil {
		return time.Time{}, db.fault(step, err)
	}
	if now.Sub(highest) < clockResolution {
		return db.floor.set(highest, db.floor.unsavedAfter(highest)), nil
	}
	err = db.inCounterTransaction(ctx, step, db.advanceClock(ctx))
	switch {
	case ctx.Err() != nil:
		return time.Time{}, err
	case err != nil:
		return db.floor.set(highest, now), nil
	}
	return db.floor.set(now, time.Time{}), nil
}

// readClock returns the current time of the store's clock, and the highest time in the table store_clock.
func (db *DB) readClock(ctx context.Context) (now, highest time.Time, err error) {
	var n, h int64
	err = db.reader.QueryRowContext(ctx, db.expandKeywords("SELECT CLOCK, highest FROM store_clock")).Scan(&n, &h)
	return fromMillis(n), fromMillis(h), err
}

// advanceClock returns the function for a transaction that marks expired rows and stores the current time as the
// highest time. If another process has stored a higher time, the function does not replace it.
func (db *DB) advanceClock(ctx context.Context) func(tx *sql.Tx) error {
	return func(tx *sql.Tx) error {
		for _, statement := range append([]string{"UPDATE store_clock SET highest = CLOCK WHERE highest < CLOCK"},
			expirySteps...) {
			if _, err := tx.ExecContext(ctx, db.expandKeywords(statement)); err != nil {
				return err
			}
		}
		return nil
	}
}

// CheckClock updates the highest time that ExpiryTime uses, and marks expired rows. It queries the store at most once
// a second.
func (db *DB) CheckClock(ctx context.Context) error {
	_, err := db.highestTime(ctx)
	return err
}

// ExpiryTime returns the time against which to check the expiry of data outside the store, such as an access token.
// The result is now, unless the highest time that CheckClock found is more than 5 minutes later; then the result is
// that highest time.
func (db *DB) ExpiryTime(now time.Time) time.Time {
	if highest, _ := db.floor.get(); highest.Sub(now) > clockSlack {
		return highest
	}
	return now
}

// A ClockState is the state of the store's clock.
type ClockState struct {
	// Now is the store's current time. Highest is the highest time that the store's clock has shown.
	Now, Highest time.Time
	// Pruned is the time of the last pruning of audit records by age; zero if there was none.
	Pruned time.Time
	// Held reports whether the clock jumped and the jump is not confirmed. Until then, no record is removed by age.
	Held bool
}

// Behind returns the time by which the clock is behind the highest time that it has shown.
func (s ClockState) Behind() time.Duration { return max(0, s.Highest.Sub(s.Now)) }

// Jump returns a text for people that describes a jump of the clock, or an empty text if there was none. There are
// two kinds of jumps. In the first, the clock is more than a day behind its highest time. In the second, Held is true
// and the clock is more than nine days after the last pruning.
func (s ClockState) Jump() string {
	const format = time.RFC3339
	switch ahead := s.Now.Sub(s.Pruned); {
	case s.Behind() > clockJump:
		return fmt.Sprintf("its clock shows %s, and has shown %s before", s.Now.Format(format), s.Highest.Format(format))
	case s.Held && ahead > usualGap:
		return fmt.Sprintf("its clock went from %s to %s", s.Pruned.Format(format), s.Now.Format(format))
	}
	return ""
}

// Difference returns now, the machine's time, minus the store's time; 0 if they differ by at most 5 minutes.
func (s ClockState) Difference(now time.Time) time.Duration {
	if off := now.Sub(s.Now); off.Abs() > clockSlack {
		return off.Round(time.Second)
	}
	return 0
}

// ClockState returns the state of the store's clock.
func (db *DB) ClockState(ctx context.Context) (ClockState, error) {
	const step = "read the clock"
	var s ClockState
	var err error
	if s.Now, s.Highest, err = db.readClock(ctx); err != nil {
		return s, db.fault(step, err)
	}
	var at, jumpAt int64
	err = db.reader.QueryRowContext(ctx, "SELECT at, jump_at FROM prunings WHERE stream = $1", AuditStream).Scan(&at,
		&jumpAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return s, db.fault(step, err)
	}
	s.Pruned, s.Held = fromMillis(at), jumpAt != 0
	return s, nil
}

// ConfirmClock accepts the store's current time, on behalf of a person who knows that it is correct. The current time
// becomes the highest time and the time of the last pruning, and a jump that was found counts as confirmed.
// ConfirmClock returns the state before the change. A fault with code InvalidInput means that the store's time
// differs from now, the machine's time, by more than 5 minutes.
func (db *DB) ConfirmClock(ctx context.Context, now time.Time) (ClockState, error) {
	const step = "confirm the clock"
	before, err := db.ClockState(ctx)
	if err != nil {
		return before, err
	}
	if off := before.Difference(now); off != 0 {
		f := db.newFault(step, drawbridge.InvalidInput, fmt.Errorf("%w: by %s", errClocksDiffer, off))
		f.Next = "set the one that is wrong"
		return before, f
	}
	err = db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		for _, statement := range []string{
			"UPDATE store_clock SET highest = CLOCK",
			"UPDATE prunings SET at = CLOCK, jump_at = 0, jump_by = ''",
		} {
			if _, err := tx.ExecContext(ctx, db.expandKeywords(statement)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		db.floor.set(before.Now, time.Time{})
	}
	return before, err
}
