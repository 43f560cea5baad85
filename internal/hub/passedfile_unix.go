//go:build unix

package hub

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A passedOutput is a client's output that another process passed to this process as an open file. The blocking mode of
// an open file is common to all processes that have the file, so this process does not change the mode. Instead, Write
// polls before each write, so that it does not block.
type passedOutput struct {
	file      *os.File
	fd        int
	cancelled atomic.Bool
}

// canPassFiles reports whether a shim can pass its client's files to the hub on this system.
const canPassFiles = true

func newPassedOutput(f *os.File) *passedOutput { return &passedOutput{file: f, fd: fileDescriptor(f)} }

// pollMillis is the interval, in milliseconds, at which a blocked read or write checks for cancellation.
const pollMillis = 100

func (o *passedOutput) Write(p []byte) (n int, err error) {
	poll := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLOUT}}
	for n < len(p) {
		if o.cancelled.Load() {
			return n, io.ErrClosedPipe
		}
		ready, err := unix.Poll(poll, pollMillis)
		if err == unix.EINTR || err == nil && ready == 0 {
			continue
		}
		if err != nil {
			return n, err
		}
		m, err := unix.Write(o.fd, p[n:min(len(p), n+pipeAtomicSize)])
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return n, err
		}
		n += m
	}
	return n, nil
}

// cancelWrite interrupts a blocked write.
func (o *passedOutput) cancelWrite() { o.cancelled.Store(true) }

// close closes the passed output.
func (o *passedOutput) close() error { return o.file.Close() }

// fileDescriptor returns the descriptor of a file without changing the file's mode. os.File.Fd may make the file
// blocking.
func fileDescriptor(f *os.File) (fd int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1
	}
	_ = raw.Control(func(n uintptr) { fd = int(n) })
	return fd
}

// A passedInput is a client's input that another process passed to this process as an open file.
type passedInput struct {
	file *os.File
	fd   int
	// hasDeadlines reports whether the file supports read deadlines. If it does not, Read polls at intervals, so that
	// cancelRead can interrupt it. A terminal is an example.
	hasDeadlines bool
	cancelled    atomic.Bool
}

func newPassedInput(f *os.File) *passedInput {
	return &passedInput{file: f, fd: fileDescriptor(f), hasDeadlines: f.SetReadDeadline(time.Time{}) == nil}
}

func (in *passedInput) Read(p []byte) (int, error) {
	poll := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}}
	for !in.hasDeadlines {
		if in.cancelled.Load() {
			return 0, io.ErrClosedPipe
		}
		if ready, err := unix.Poll(poll, pollMillis); err == nil && ready > 0 {
			break
		}
	}
	return in.file.Read(p)
}

// cancelRead interrupts a blocked read.
func (in *passedInput) cancelRead() {
	in.cancelled.Store(true)
	_ = in.file.SetReadDeadline(time.Now())
}

// close closes the passed input.
func (in *passedInput) close() error { return in.file.Close() }
