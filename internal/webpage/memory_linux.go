package webpage

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// limitMemory limits the memory that this process may map to the present amount and more additional bytes.
func limitMemory(more uint64) {
	var pages uint64
	statm, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(statm), &pages)
	}
	if err != nil {
		return
	}
	limit := pages*uint64(os.Getpagesize()) + more
	_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}) // if this fails, only GOMEMLIMIT applies
}
