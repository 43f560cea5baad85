package again

import (
	"maps"
	"time"
)

// JustNow is how long after an attempt that went wrong another would most likely go wrong as well.
const JustNow = 500 * time.Millisecond

// Failures are the attempts that went wrong a moment ago, by what was attempted. The zero value has none. Its methods may not be
// called from several goroutines at once.
type Failures[K comparable] struct{ last map[K]failure }

type failure struct {
	at  time.Time
	err error
}

// Note notes that an attempt went wrong.
func (f *Failures[K]) Note(k K, err error) {
	now := time.Now()
	maps.DeleteFunc(f.last, func(_ K, old failure) bool { return now.Sub(old.at) >= JustNow })
	if f.last == nil {
		f.last = map[K]failure{}
	}
	f.last[k] = failure{now, err}
}

// Last gives what went wrong at the last attempt, where that is only a moment ago.
func (f *Failures[K]) Last(k K) error {
	if old, ok := f.last[k]; ok && time.Since(old.at) < JustNow {
		return old.err
	}
	return nil
}

// Forget forgets what went wrong: an attempt went well.
func (f *Failures[K]) Forget(k K) { delete(f.last, k) }
