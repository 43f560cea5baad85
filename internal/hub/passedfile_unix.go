//go:build unix

package hub

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// An passedOutput is a client's output that another process lent us. Whether it blocks is a property that all who have
// it share, and is left as it is: so it is asked before each write whether it takes something.
type passedOutput struct {
	file      *os.File
	fd        int
	cancelled atomic.Bool
}

// canPassFiles says whether a shim can lend its client's input and output here.
const canPassFiles = true

func newPassedOutput(f *os.File) *passedOutput { return &passedOutput{file: f, fd: fileDescriptor(f)} }

// pollMillis is how long a write waits before it looks whether it is still wanted.
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

// cancelWrite has a write that goes on end.
func (o *passedOutput) cancelWrite() { o.cancelled.Store(true) }

// close gives the output back.
func (o *passedOutput) close() error { return o.file.Close() }

// fileDescriptor gives a file's descriptor and leaves it as it is; os.File.Fd may have it block from then on.
func fileDescriptor(f *os.File) (fd int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1
	}
	_ = raw.Control(func(n uintptr) { fd = int(n) })
	return fd
}

// An passedInput is a client's input that another process lent us.
type passedInput struct {
	file *os.File
	fd   int
	// hasDeadlines says that the runtime waits for it. Where it cannot, a terminal for one, it is asked from time to
	// time whether it is still wanted.
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

// cancelRead has a read that waits end.
func (in *passedInput) cancelRead() {
	in.cancelled.Store(true)
	_ = in.file.SetReadDeadline(time.Now())
}

// close gives the input back.
func (in *passedInput) close() error { return in.file.Close() }
