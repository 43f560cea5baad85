package process

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// selfPath returns a path of our executable that stays valid when an update replaces the file.
func selfPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// dieWithParent lets the kernel kill the program when the thread that started it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// becomeSubreaper makes this process the new parent of orphaned descendants.
func becomeSubreaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = os.WriteFile("/proc/self/comm", []byte("drawbridge-reap"), 0) // else ps shows "exe"
}

// closeInheritedFDs marks all inherited descriptors close-on-exec: files of the client must not reach a server.
func closeInheritedFDs() {
	if unix.CloseRange(firstInheritedFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		closeOnExec("/proc/self/fd")
	}
}

// nothingLeft reports whether nothing is left, when no child is left. It is always true here, since orphans become
// our children.
func (r *reaper) nothingLeft() bool { return true }

// remainingPIDs returns our children. Their descendants become our children when they end. Only children are signalled:
// their PIDs cannot be reused before we wait for them, so no other process is hit.
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
		// "pid (name) state ppid …": the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && bytes.Equal(fields[1], self) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return []int{-r.leader} // no /proc, or that of another namespace: the process group must do
	}
	return pids
}
