package process

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// selfPath returns a path of this executable that stays valid when an update replaces the file.
func selfPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// dieWithParent makes the kernel kill the program when the thread that started it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// becomeSubreaper makes this process the new parent of orphaned descendants.
func becomeSubreaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = os.WriteFile("/proc/self/comm", []byte("drawbridge-reap"), 0) // otherwise ps shows "exe"
}

// closeInheritedFDs marks all inherited file descriptors close-on-exec. Drawbridge may have inherited open files from
// the MCP client that started it, and a server must not receive them.
func closeInheritedFDs() {
	if unix.CloseRange(firstInheritedFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		closeOnExec("/proc/self/fd")
	}
}

// nothingLeft reports whether no process is left. It must be called only if the reaper has no child. It always returns
// true on Linux, since orphaned descendants become children of the reaper.
func (r *reaper) nothingLeft() bool { return true }

// remainingPIDs returns the reaper's children. Only children are signalled: the PID of a child cannot be reused before
// the reaper waits for the child, so no other process is hit. Descendants become children when their parents end.
func (r *reaper) remainingPIDs() []int {
	entries, _ := os.ReadDir("/proc")
	self := []byte(strconv.Itoa(os.Getpid()))
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The format is "pid (name) state ppid …". The name may contain any characters.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && bytes.Equal(fields[1], self) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return []int{-r.leader} // /proc is missing or belongs to another namespace: use the process group
	}
	return pids
}
