package hub

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A processTree holds the child processes of each process of this machine.
type processTree struct{ children map[int][]int }

// readProcessTree reads the parent of every process from /proc once.
func readProcessTree() processTree {
	f := processTree{children: map[int][]int{}}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the error is only for invalid patterns
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// The name in parentheses may contain any character; the state and the parent follow it (proc_pid_stat(5)).
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		pid, errPID := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if len(fields) < 2 || errPID != nil {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			f.children[parent] = append(f.children[parent], pid)
		}
	}
	return f
}

// residentBytes returns the resident memory of a process in bytes.
func (f processTree) residentBytes(pid int) int64 {
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

// treeResidentBytes returns the resident memory of a process and all its descendants, in bytes.
func (f processTree) treeResidentBytes(pid int) int64 {
	sum := f.residentBytes(pid)
	for _, kid := range f.children[pid] {
		sum += f.treeResidentBytes(kid)
	}
	return sum
}
