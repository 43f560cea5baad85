//go:build unix

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A processTree is a program with all processes that it started, as seen by the process that started the program.
type processTree struct {
	// lifePipe is Drawbridge's end of the pipe that shows the supervisor or the reaper that Drawbridge is alive.
	// statusPipe is its end of the pipe that is closed when the reaper ends; nil without a reaper.
	lifePipe, statusPipe *os.File

	mu    sync.Mutex // held while lifePipe is written to or closed
	group int        // the process group, without a reaper
	// waitExit waits until the program, or its reaper, has ended. It is called once.
	waitExit func() error
}

// The orders that are sent to the supervisor or the reaper through the life pipe. The end of the pipe also means orderTerminate.
const (
	orderTerminate = 'T'
	orderKill      = 'K'
)

// launchTree starts the program under the supervisor, or through a reaper if that is impossible and this executable can
// run as one. It returns the program's process ID.
func launchTree(ctx context.Context, l launch) (*processTree, int, error) {
	tree, pid, err := launchSupervised(ctx, l)
	if !errors.Is(err, errNoSupervisor) {
		return tree, pid, err
	}
	if l.profile != nil {
		if err := confineByReexec(l.cmd, l.profile); err != nil {
			return nil, 0, err
		}
	}
	if !reaperEnabled.Load() {
		return launchWithoutReaper(l.cmd)
	}
	return launchThroughReaper(ctx, l.cmd, l.grace)
}

// errNoSupervisor is the error of launchSupervised if this system cannot run the supervisor. Nothing was started.
var errNoSupervisor = errors.New("this system cannot run the supervisor")

// launchThroughReaper starts cmd through this executable, which runs as a reaper.
func launchThroughReaper(ctx context.Context, cmd *exec.Cmd, grace time.Duration) (*processTree, int, error) {
	lifeFar, life, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	status, statusFar, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{lifeFar, life})
		return nil, 0, err
	}
	defer closeAll([]*os.File{lifeFar, statusFar})
	self, err := selfPath()
	if err != nil {
		closeAll([]*os.File{life, status})
		return nil, 0, err
	}
	cmd.Args = append([]string{reaperName, strconv.FormatInt(grace.Milliseconds(), 10), cmd.Path}, cmd.Args...)
	cmd.Path = self
	cmd.ExtraFiles = []*os.File{lifeFar, statusFar}
	// The reaper gets its own process group, so that it does not receive a Ctrl-C at the terminal directly.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		closeAll([]*os.File{life, status})
		return nil, 0, err
	}
	_ = statusFar.Close()
	pid, err := readStarted(ctx, status)
	if err != nil {
		closeAll([]*os.File{life, status})
		stuck := time.AfterFunc(2*grace+drainTimeout, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		stuck.Stop()
		return nil, 0, err
	}
	return &processTree{lifePipe: life, statusPipe: status, waitExit: cmd.Wait}, pid, nil
}

// readStarted reads the reaper's report about the start: the program's process ID or an error.
func readStarted(ctx context.Context, status *os.File) (pid int, err error) {
	stop := context.AfterFunc(ctx, func() { _ = status.SetReadDeadline(time.Unix(1, 0)) })
	said, err := readStatus(status)
	if !stop() {
		_ = status.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return 0, context.Cause(ctx)
	}
	if number, ok := bytes.CutPrefix(said, []byte(startedPrefix)); ok {
		return strconv.Atoi(string(bytes.TrimSuffix(number, []byte("\n"))))
	}
	if len(said) == 0 {
		return 0, errors.New("the reaper ended before it started the program")
	}
	return 0, errors.New(string(said))
}

// readStatus reads from the status pipe until the line about a successful start is complete or the pipe ends.
func readStatus(status io.Reader) (said []byte, err error) {
	part := make([]byte, 512)
	for !bytes.HasPrefix(said, []byte(startedPrefix)) || !bytes.HasSuffix(said, []byte("\n")) {
		n, err := status.Read(part)
		said = append(said, part[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return said, nil
}

// launchWithoutReaper starts cmd without a reaper. The kernel sends the parent-death signal when the thread that
// started the program ends. Therefore that thread is kept until the program has ended.
func launchWithoutReaper(cmd *exec.Cmd) (*processTree, int, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	exit, begun := make(chan error, 1), make(chan error, 1)
	go func() { // ends with the program; processTree.wait waits for it
		runtime.LockOSThread()
		if err := cmd.Start(); err != nil {
			begun <- err
			return
		}
		begun <- nil
		err := cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		exit <- err
	}()
	if err := <-begun; err != nil {
		return nil, 0, err
	}
	return &processTree{group: cmd.Process.Pid, waitExit: func() error { return <-exit }}, cmd.Process.Pid, nil
}

// wait waits until the program has ended and closes the pipes. With a reaper, all processes of the tree have then
// ended. With a reaper, wait first reads the status pipe through the runtime's poller until the reaper ends. Otherwise
// one thread for each server would wait in a system call. The runtime may fail to notice such a thread, which would
// stall this process.
func (t *processTree) wait() error {
	if t.statusPipe != nil {
		_, _ = io.Copy(io.Discard, t.statusPipe)
		_ = t.statusPipe.Close()
	}
	err := t.waitExit()
	if t.lifePipe != nil {
		t.mu.Lock()
		_ = t.lifePipe.Close()
		t.mu.Unlock()
	}
	return describeSignalExit(err)
}

// describeSignalExit returns an error that names the signal if a signal ended the program. A reaper reports a signal as
// a shell does: as exit status 128 plus its number.
func describeSignalExit(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() <= 128 {
		return err
	}
	return fmt.Errorf("signal: %v", syscall.Signal(exit.ExitCode()-128))
}

// terminate asks all processes in the tree to end.
func (t *processTree) terminate() { t.sendOrder(orderTerminate, syscall.SIGTERM) }

// kill kills all processes in the tree.
func (t *processTree) kill() { t.sendOrder(orderKill, syscall.SIGKILL) }

func (t *processTree) sendOrder(order byte, sig syscall.Signal) {
	if t.lifePipe == nil {
		_ = syscall.Kill(-t.group, sig)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.lifePipe.Write([]byte{order}) // an error means that the reaper, and with it the program, has ended
}
