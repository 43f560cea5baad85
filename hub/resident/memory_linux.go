package resident

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Forest is the processes of the machine.
type Forest struct{ kids map[int][]int }

// Processes looks at all processes once.
func Processes() Forest {
	f := Forest{kids: map[int][]int{}}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name in parentheses may hold anything; after it come the state and the parent (proc_pid_stat(5)).
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		pid, errPID := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if len(fields) < 2 || errPID != nil {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			f.kids[parent] = append(f.kids[parent], pid)
		}
	}
	return f
}

// Memory is what a process has resident, in bytes.
func (f Forest) Memory(pid int) int64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// Whole is what a process and everything that it started have resident.
func (f Forest) Whole(pid int) int64 {
	sum := f.Memory(pid)
	for _, kid := range f.kids[pid] {
		sum += f.Whole(kid)
	}
	return sum
}
