package upstream

import (
	"maps"
	"time"
)

// recentFailureWindow is how long after a failed attempt the same attempt is not made again. It would most likely fail
// too, so the stored error is returned instead.
const recentFailureWindow = 500 * time.Millisecond

// recentFailures stores the errors of recently failed attempts by key. The zero value is empty. Its methods must not be
// called concurrently.
type recentFailures[K comparable] struct{ last map[K]timedError }

type timedError struct {
	at  time.Time
	err error
}

// record stores the error of a failed attempt, and deletes errors that are not recent.
func (f *recentFailures[K]) record(k K, err error) {
	now := time.Now()
	maps.DeleteFunc(f.last, func(_ K, old timedError) bool { return now.Sub(old.at) >= recentFailureWindow })
	if f.last == nil {
		f.last = map[K]timedError{}
	}
	f.last[k] = timedError{now, err}
}

// lastError returns the error of the last attempt if that failed recently, otherwise nil.
func (f *recentFailures[K]) lastError(k K) error {
	if old, ok := f.last[k]; ok && time.Since(old.at) < recentFailureWindow {
		return old.err
	}
	return nil
}

// forget deletes the error of a key after a successful attempt.
func (f *recentFailures[K]) forget(k K) { delete(f.last, k) }
