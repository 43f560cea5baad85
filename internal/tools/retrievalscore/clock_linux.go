package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is how long this thread has worked, whatever else the machine does. The goroutine is locked to its thread.
func clock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
