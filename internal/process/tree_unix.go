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

// A processTree is a program and everything it started, seen from us.
type processTree struct {
	// lifePipe is our end of the pipe that tells the reaper we are alive, status that of the one whose end says that
	// it is not any more; nil without a reaper.
	lifePipe, statusPipe *os.File

	mu    sync.Mutex // guards writes to life against its closing
	group int        // the process group, without a reaper
	// waitExit waits for the program's end. It is called once.
	waitExit func() error
}

// Orders that go down the life pipe. The pipe's end is an order too: to terminate.
const (
	orderTerminate = 'T'
	orderKill      = 'K'
)

// launchTree starts cmd, through a reaper where this program can be one, and gives the program's process id.
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
	// A group of its own, so that a Ctrl-C at our terminal is ours to pass on.
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

// readStarted reads what the reaper says of the program's start: its process id, or why there is none.
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

// readStatus reads up to the end of what is said of a start that went well, or of everything.
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
// the program, so the thread stays until the program has ended.
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

// wait waits for the program's end and gives back the pipes. With a reaper, nothing of the program is left then; and
// then its end is awaited on a pipe, through the runtime's poller: no thread waits for each server in a system call,
// where the runtime may fail to see it (see package stdin) and stand still with all of us.
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

// describeSignalExit turns the status of a program that was killed, which a reaper gives as a shell does, into words.
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
