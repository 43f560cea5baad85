//go:build bench

package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what the scheduler has counted for all threads of a process, those that ended too, in microseconds.
func processorTime(pid int) (µs float64, ok bool) {
	const scheduler = 2 // CPUCLOCK_SCHED: the clock of a process is ^pid<<3 with the kind in the low bits
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &spent); err != nil {
		return 0, false
	}
	return float64(spent.Nano()) / 1000, true
}

// countSyscalls returns the number of system calls of processes while work runs, and how they were counted. With a
// tracepoint of the kernel nothing is stopped. Where that is not permitted strace counts, which stops the processes at
// each call. If neither is possible the work is done, and by is empty.
func countSyscalls(pids []int, work func() error) (n float64, by string, err error) {
	if id, found := syscallTracepoint(); found {
		n, err := countByTracepoint(id, pids, work)
		if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
			return n, "tracepoint", err
		}
	}
	if strace, missing := exec.LookPath("strace"); missing == nil {
		n, err := countByStrace(strace, pids, work)
		if !errors.Is(err, errNotTraced) {
			return n, "strace", err
		}
	}
	return 0, "", work()
}

// syscallTracepoint returns the number of the tracepoint at the entry of system calls. The file system that has it is
// mounted for a moment by a process of its own, whose mounts nobody else sees.
func syscallTracepoint() (id uint64, found bool) {
	for _, root := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		if id, err := readTracepoint(root); err == nil {
			return id, true
		}
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=tracepoint")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.Output()
	if err != nil {
		return 0, false
	}
	id, err = strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
	return id, err == nil
}

func readTracepoint(root string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(root, "events/raw_syscalls/sys_enter/id"))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// tracepoint is the role of the process that mounts the file system and prints the number.
func tracepoint() error {
	const root = "/sys/kernel/tracing"
	if err := unix.Mount("tracefs", root, "tracefs", 0, ""); err != nil {
		return err
	}
	id, err := readTracepoint(root)
	if err != nil {
		return err
	}
	fmt.Println(id)
	return nil
}

// countByTracepoint counts on all threads that are there, and on those that they start.
func countByTracepoint(id uint64, pids []int, work func() error) (n float64, err error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id, Bits: unix.PerfBitInherit}
	attr.Size = uint32(binary.Size(attr))
	var counters []int
	defer func() {
		for _, fd := range counters {
			unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none where the process has ended
		for _, thread := range threads {
			tid, _ := strconv.Atoi(thread.Name())
			fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			if errors.Is(err, unix.ESRCH) {
				continue
			}
			if err != nil {
				return 0, err
			}
			counters = append(counters, fd)
		}
	}
	if err := work(); err != nil {
		return 0, err
	}
	for _, fd := range counters {
		var count [8]byte
		if _, err := unix.Read(fd, count[:]); err != nil {
			return 0, err
		}
		n += float64(binary.NativeEndian.Uint64(count[:]))
	}
	return n, nil
}

var errNotTraced = errors.New("strace cannot attach")

// countByStrace reads the sum that strace prints at its end.
func countByStrace(strace string, pids []int, work func() error) (n float64, err error) {
	args := []string{"-f", "-c", "-U", "calls"}
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	var said safeBuilder
	cmd := exec.Command(strace, args...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return 0, errNotTraced
	}
	attached := until(5*time.Second, func() bool {
		return strings.Count(said.String(), "attached") >= len(pids) && traced(pids)
	})
	var failed error
	if attached {
		failed = work()
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait() // it ends by the signal
	if !attached {
		return 0, errNotTraced
	}
	for line := range strings.Lines(said.String()) {
		if sum, ok := strings.CutSuffix(strings.TrimSpace(line), " total"); ok {
			count, err := strconv.ParseFloat(strings.TrimSpace(sum), 64)
			return count, errors.Join(failed, err)
		}
	}
	return 0, errors.Join(failed, errors.New("strace printed no sum"))
}

// traced reports whether every thread has a tracer.
func traced(pids []int) bool {
	for _, pid := range pids {
		states, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, state := range states {
			text, err := os.ReadFile(state)
			if err == nil && bytes.Contains(text, []byte("TracerPid:\t0\n")) {
				return false
			}
		}
	}
	return true
}
