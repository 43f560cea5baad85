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

// A tree is a program and everything it started, seen from us.
type tree struct {
	// life is our end of the pipe that tells the reaper we are alive, status that of the one whose end says that it is not any
	// more; nil without a reaper.
	life, status *os.File

	mu    sync.Mutex // guards writes to life against its closing
	group int        // the process group, without a reaper
	// exit waits for the program's end. It is called once.
	exit func() error
}

// Orders that go down the life pipe. The pipe's end is an order too: to terminate.
const (
	orderTerminate = 'T'
	orderKill      = 'K'
)

// launch starts cmd, through a reaper where this program can be one, and gives the program's process id.
func launch(ctx context.Context, cmd *exec.Cmd, grace time.Duration) (*tree, int, error) {
	if !reaps.Load() {
		return launchAlone(cmd)
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
	cmd.Args = append([]string{marker, strconv.FormatInt(grace.Milliseconds(), 10), cmd.Path}, cmd.Args...)
	cmd.Path = self
	cmd.ExtraFiles = []*os.File{lifeFar, statusFar}
	// A group of its own, so that a Ctrl-C at our terminal is ours to pass on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		closeAll([]*os.File{life, status})
		return nil, 0, err
	}
	_ = statusFar.Close()
	pid, err := started(ctx, status)
	if err != nil {
		closeAll([]*os.File{life, status})
		stuck := time.AfterFunc(2*grace+drainTime, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		stuck.Stop()
		return nil, 0, err
	}
	return &tree{life: life, status: status, exit: cmd.Wait}, pid, nil
}

// started reads what the reaper says of the program's start: its process id, or why there is none.
func started(ctx context.Context, status *os.File) (pid int, err error) {
	stop := context.AfterFunc(ctx, func() { _ = status.SetReadDeadline(time.Unix(1, 0)) })
	said, err := readStatus(status)
	if !stop() {
		_ = status.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return 0, context.Cause(ctx)
	}
	if number, ok := bytes.CutPrefix(said, []byte(startedWord)); ok {
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
	for !bytes.HasPrefix(said, []byte(startedWord)) || !bytes.HasSuffix(said, []byte("\n")) {
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

// launchAlone starts cmd without a reaper. The parent-death signal is sent when the thread ends that started the
// program, so the thread stays until the program has ended.
func launchAlone(cmd *exec.Cmd) (*tree, int, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	exit, begun := make(chan error, 1), make(chan error, 1)
	go func() { // ends with the program; tree.wait waits for it
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
	return &tree{group: cmd.Process.Pid, exit: func() error { return <-exit }}, cmd.Process.Pid, nil
}

// wait waits for the program's end and gives back the pipes. With a reaper, nothing of the program is left then; and then
// its end is awaited on a pipe, through the runtime's poller: no thread waits for each server in a system call, where the
// runtime may fail to see it (see package stdin) and stand still with all of us.
func (t *tree) wait() error {
	if t.status != nil {
		_, _ = io.Copy(io.Discard, t.status)
		_ = t.status.Close()
	}
	err := t.exit()
	if t.life != nil {
		t.mu.Lock()
		_ = t.life.Close()
		t.mu.Unlock()
	}
	return explain(err)
}

// explain turns the status of a program that was killed, which a reaper gives as a shell does, into words.
func explain(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() <= 128 {
		return err
	}
	return fmt.Errorf("signal: %v", syscall.Signal(exit.ExitCode()-128))
}

// terminate asks everything in the tree to end.
func (t *tree) terminate() { t.order(orderTerminate, syscall.SIGTERM) }

// kill ends everything in the tree.
func (t *tree) kill() { t.order(orderKill, syscall.SIGKILL) }

func (t *tree) order(order byte, sig syscall.Signal) {
	if t.life == nil {
		_ = syscall.Kill(-t.group, sig)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.life.Write([]byte{order}) // an error means that the reaper is gone, and with it the program
}
