//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"golang.org/x/sys/unix"
)

const (
	// reaperName is argv[0] of this executable when it runs as a reaper. The following arguments are the grace in
	// milliseconds, the program's path, and the program's whole argv.
	reaperName = "drawbridge-reaper"

	// lifeFD and statusFD are the two file descriptors that a reaper receives in addition to the standard streams.
	lifeFD, statusFD = 3, 4

	// startedPrefix precedes the program's process ID in the line that the reaper writes to the status pipe. The pipe
	// then stays open while the reaper runs. Any other content is the text of an error.
	startedPrefix = "started "
)

// reaperEnabled is true if main has called RunIfReaper. Only then may this package run the executable again as a
// reaper. Without that call, the new process would run main as usual. The variable is global since it describes the
// process, and is set once.
var reaperEnabled atomic.Bool

// canReap reports whether this package can run this executable again as a reaper.
func canReap() bool { return reaperEnabled.Load() }

// RunIfReaper must be called first in main, and in TestMain of tests that start servers. If this package started the
// process as a reaper, RunIfReaper runs the reaper and never returns. If this package started the process to become a
// confined program, RunIfReaper confines the process, executes the program and never returns. In all other processes it
// returns at once.
func RunIfReaper() {
	if len(os.Args) > 3 && os.Args[0] == confine.ReexecName {
		os.Exit(confine.RunConfined(os.Args[1:]))
	}
	if len(os.Args) < 4 || os.Args[0] != reaperName {
		reaperEnabled.Store(true)
		return
	}
	os.Exit(runReaper(os.Args[1], os.Args[2], os.Args[3:]))
}

// runReaper starts the program, waits until the program ends or the parent dies, and ends the remaining processes. It
// returns the program's exit status, or 128 plus the number of the signal that ended the program.
func runReaper(grace, path string, argv []string) int {
	runtime.LockOSThread() // the parent-death signal of the program is tied to this thread
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	becomeSubreaper()
	unix.CloseOnExec(lifeFD)
	unix.CloseOnExec(statusFD)
	closeInheritedFDs()
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	pid, err := startProgram(path, argv, attr)
	status := os.NewFile(statusFD, "status")
	if err != nil {
		_, _ = status.WriteString(err.Error())
		return 127
	}
	_, _ = status.WriteString(startedPrefix + strconv.Itoa(pid) + "\n")
	redirectStreamsToNull()
	ms, _ := strconv.Atoi(grace)
	r := &reaper{leader: pid, grace: time.Duration(ms) * time.Millisecond, terminated: map[int]bool{}}
	orders := make(chan byte)
	go readOrders(orders)           // ends with the process
	defer runtime.KeepAlive(status) // its end shows the parent that the reaper has ended
	return r.waitAndSweep(signals, orders)
}

// firstInheritedFD is the first file descriptor after the standard streams and the two descriptors of the reaper.
const firstInheritedFD = statusFD + 1

// closeOnExec marks each file descriptor that is listed in the directory dir as close-on-exec.
func closeOnExec(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstInheritedFD {
			unix.CloseOnExec(fd)
		}
	}
}

// startProgram starts the program. For a confined program, it returns when the confinement is in effect, or with the
// error of the confinement.
func startProgram(path string, argv []string, attr *syscall.SysProcAttr) (pid int, err error) {
	files := []uintptr{0, 1, 2}
	if argv[0] != confine.ReexecName {
		return syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: files, Sys: attr})
	}
	said, say, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer said.Close()
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(),
		Files: append(files, say.Fd()), Sys: attr})
	_ = say.Close()
	if err != nil {
		return 0, err
	}
	why, err := io.ReadAll(said)
	if err == nil && len(why) > 0 {
		err = errors.New(string(why))
	}
	return pid, err
}

// redirectStreamsToNull connects the reaper's standard streams to the null device. Only the program may have the pipes
// open, so that their end is noticed when the program ends.
func redirectStreamsToNull() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range 3 {
		if err != nil {
			_ = unix.Close(fd)
			continue
		}
		_ = unix.Dup2(null, fd)
	}
}

// readOrders reads the orders from the life pipe and sends them to orders. It sends orderTerminate when the pipe ends.
func readOrders(orders chan<- byte) {
	var order [1]byte
	for {
		n, err := unix.Read(lifeFD, order[:])
		switch {
		case err == unix.EINTR:
		case n <= 0:
			orders <- orderTerminate
			return
		default:
			orders <- order[0]
		}
	}
}

// A reaper ends the remaining processes of a process tree. leader is the process ID of the program.
type reaper struct {
	leader int
	grace  time.Duration
	// status is the leader's exit status; it is valid if ended is set.
	status int
	ended  bool
	// terminated is the set of processes that have received SIGTERM.
	terminated map[int]bool
}

// The pause between two rounds of signals grows from minSweepPause to maxSweepPause. It is short at first, since most
// programs end at once.
const (
	minSweepPause = 2 * time.Millisecond
	maxSweepPause = 50 * time.Millisecond
)

// waitAndSweep waits until the leader, which is the program, has ended, or until an order or a signal arrives. It then
// ends the remaining processes and returns the leader's status.
func (r *reaper) waitAndSweep(signals <-chan os.Signal, orders <-chan byte) int {
	kill := false
	for wait := true; wait && r.reapChildren() && !r.ended; {
		select {
		case s := <-signals:
			wait = s == syscall.SIGCHLD
		case order := <-orders:
			wait, kill = false, order == orderKill
		}
	}
	deadline := time.Now().Add(r.grace)
	for round := minSweepPause; r.reapChildren(); round = min(2*round, maxSweepPause) {
		r.signalRemaining(kill || time.Now().After(deadline))
		next := time.NewTimer(round)
		select {
		case <-signals:
		case order := <-orders:
			kill = kill || order == orderKill
		case <-next.C:
		}
		next.Stop()
	}
	return r.status
}

// reapChildren reads the exit status of each child that has ended, and does not wait for other children. It returns
// false if no process is left.
func (r *reaper) reapChildren() bool {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
		case err != nil: // no children
			return !r.nothingLeft()
		case pid == 0:
			return true
		case pid == r.leader:
			r.ended = true
			if r.status = status.ExitStatus(); status.Signaled() {
				r.status = 128 + int(status.Signal())
			}
			fallthrough
		default:
			delete(r.terminated, pid)
		}
	}
}

// signalRemaining sends SIGTERM once to each remaining process, or SIGKILL if kill is set.
func (r *reaper) signalRemaining(kill bool) {
	for _, pid := range r.remainingPIDs() {
		switch {
		case kill:
			r.signalProcess(pid, unix.SIGKILL)
		case !r.terminated[pid]:
			r.terminated[pid] = true
			r.signalProcess(pid, unix.SIGTERM)
		}
	}
}

// signalProcess sends a signal to a process, or to the whole process group if the process is the leader.
func (r *reaper) signalProcess(pid int, sig unix.Signal) {
	if pid == r.leader && unix.Kill(-pid, sig) == nil {
		return
	}
	_ = unix.Kill(pid, sig)
}
