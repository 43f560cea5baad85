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

// A processTree is a program with everything it started, as its parent controls it.
type processTree struct {
	// lifePipe is our end of the pipe that tells the reaper we are alive; status is our end of the pipe that ends with
	// the reaper. Both are nil without a reaper.
	lifePipe, statusPipe *os.File

	mu    sync.Mutex // guards writes to lifePipe against its closing
	group int        // the process group, without a reaper
	// waitExit waits for the program's end. It is called once.
	waitExit func() error
}

// Orders that are sent through the life pipe. The end of the pipe is an order too: to terminate.
const (
	orderTerminate = 'T'
	orderKill      = 'K'
)

// launchTree starts cmd, through a reaper if this program can be one, and returns the program's process ID.
func launchTree(ctx context.Context, cmd *exec.Cmd, grace time.Duration) (*processTree, int, error) {
	if !reaperEnabled.Load() {
		return launchWithoutReaper(cmd)
	}
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
	// A group of its own, so that we decide how to pass on a Ctrl-C at our terminal.
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

// readStatus reads the status pipe up to the end of the line about a successful start, or to its end.
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

// launchWithoutReaper starts cmd without a reaper. The parent-death signal is sent when the thread ends that started
// the program, so that thread stays until the program has ended.
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

// wait waits for the program's end and closes the pipes. With a reaper, nothing of the program is left then. The end is
// awaited on a pipe through the runtime's poller. So no thread waits per server in a system call, which the runtime may
// fail to notice (see PolledStdin) and which would then stall this process.
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

// describeSignalExit describes the status of a killed program, which a reaper reports as a shell does.
func describeSignalExit(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() <= 128 {
		return err
	}
	return fmt.Errorf("signal: %v", syscall.Signal(exit.ExitCode()-128))
}

// terminate asks everything in the tree to end.
func (t *processTree) terminate() { t.sendOrder(orderTerminate, syscall.SIGTERM) }

// kill ends everything in the tree.
func (t *processTree) kill() { t.sendOrder(orderKill, syscall.SIGKILL) }

func (t *processTree) sendOrder(order byte, sig syscall.Signal) {
	if t.lifePipe == nil {
		_ = syscall.Kill(-t.group, sig)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.lifePipe.Write([]byte{order}) // an error means that the reaper is gone, and with it the program
}
