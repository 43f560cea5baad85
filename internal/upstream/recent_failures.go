package upstream

import (
	"maps"
	"time"
)

// recentFailureWindow is how long after an attempt that went wrong another would most likely go wrong as well.
const recentFailureWindow = 500 * time.Millisecond

// recentFailures are the attempts that went wrong a moment ago, by what was attempted. The zero value has none. Its
// methods may not be called from several goroutines at once.
type recentFailures[K comparable] struct{ last map[K]timedError }

type timedError struct {
	at  time.Time
	err error
}

// record notes that an attempt went wrong.
func (f *recentFailures[K]) record(k K, err error) {
	now := time.Now()
	maps.DeleteFunc(f.last, func(_ K, old timedError) bool { return now.Sub(old.at) >= recentFailureWindow })
	if f.last == nil {
		f.last = map[K]timedError{}
	}
	f.last[k] = timedError{now, err}
}

// lastError gives what went wrong at the last attempt, where that is only a moment ago.
func (f *recentFailures[K]) lastError(k K) error {
	if old, ok := f.last[k]; ok && time.Since(old.at) < recentFailureWindow {
		return old.err
	}
	return nil
}

// forget forgets what went wrong: an attempt went well.
func (f *recentFailures[K]) forget(k K) { delete(f.last, k) }
