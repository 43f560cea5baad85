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
	// reaperName is argv[0] of our executable when it runs as a reaper. The arguments after it are the grace in
	// milliseconds, the program's path, and its whole argv.
	reaperName = "drawbridge-reaper"

	// The two descriptors that a reaper receives in addition to the standard ones.
	lifeFD, statusFD = 3, 4

	// startedPrefix comes before the program's process ID on a line of the status pipe, which then stays open as long
	// as the reaper lives. Any other content is the text of an error.
	startedPrefix = "started "
)

// reaperEnabled is true if this program calls RunIfReaper, so that running it again runs a reaper and not the program.
// It is a fact about the process, written once; only the caller of RunIfReaper knows it.
var reaperEnabled atomic.Bool

// canReap reports whether this package can run this program again.
func canReap() bool { return reaperEnabled.Load() }

// RunIfReaper must be called first thing in main, and in TestMain of tests that start servers. It returns at once,
// unless this process was started by this package as a reaper, or to become a confined program: then it does that and
// never returns.
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

// runReaper starts the program, waits until it ends or the parent dies, and ends all that is left. It returns the
// program's status, or 128 plus the number of the signal that ended it.
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
	defer runtime.KeepAlive(status) // whose end tells of ours
	return r.waitAndSweep(signals, orders)
}

// firstInheritedFD is the first descriptor that is neither a standard stream nor one of the reaper's.
const firstInheritedFD = statusFD + 1

// closeOnExec marks every descriptor that a directory lists close-on-exec.
func closeOnExec(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstInheritedFD {
			unix.CloseOnExec(fd)
		}
	}
}

// startProgram starts the program. For a confined program it returns once the confinement is in effect.
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

// redirectStreamsToNull replaces our standard streams: only the program may hold them, so that their ends are noticed.
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

// readOrders passes on the orders from the life pipe; the end of the pipe is an order to terminate.
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

// A reaper ends the remaining processes of a process tree.
type reaper struct {
	leader int
	grace  time.Duration
	// status is the leader's exit status, once it has ended.
	status int
	ended  bool
	// terminated are the processes that have received SIGTERM.
	terminated map[int]bool
}

// The intervals between two sweeps: short at first, since most programs end at once.
const (
	minSweepPause = 2 * time.Millisecond
	maxSweepPause = 50 * time.Millisecond
)

// waitAndSweep waits for the leader's end or for an order, then sweeps.
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

// reapChildren waits for the children that have ended. It returns false if nothing is left.
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

// signalRemaining sends SIGTERM to each remaining process once, or SIGKILL.
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

// signalProcess signals a process; for the leader, its whole group.
func (r *reaper) signalProcess(pid int, sig unix.Signal) {
	if pid == r.leader && unix.Kill(-pid, sig) == nil {
		return
	}
	_ = unix.Kill(pid, sig)
}
