package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock returns the processor time that the current thread has used. Other programs on the machine do not change it.
// The goroutine must be locked to its thread.
func clock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
