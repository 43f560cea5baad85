package process

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// selfPath leads to our executable, also when an update has put another in its place.
func selfPath() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// dieWithParent has the program killed when the thread that starts it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// becomeSubreaper makes this process the one that orphans of its descendants fall to.
func becomeSubreaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = os.WriteFile("/proc/self/comm", []byte("drawbridge-reap"), 0) // else ps shows "exe"
}

// closeInheritedFDs has no descriptor passed on that this process was given by somebody who forgot it: a client's
// files are no server's.
func closeInheritedFDs() {
	if unix.CloseRange(firstInheritedFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		closeOnExec("/proc/self/fd")
	}
}

// nothingLeft says whether nothing is left, when there are no children: as orphans fall to us, nothing is.
func (r *reaper) nothingLeft() bool { return true }

// remainingPIDs are our children. What they started falls to us when they end: signalling nobody else, no signal hits a
// stranger that was given the number of a process long gone, since a child's number is ours until we wait for it.
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
