//go:build unix

package hub

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// An output is a client's output that another process lent us. Whether it blocks is a property that all who have it share,
// and is left as it is: so it is asked before each write whether it takes something.
type output struct {
	file *os.File
	fd   int
	shut atomic.Bool
}

// canLend says whether a shim can lend its client's input and output here.
const canLend = true

func newOutput(f *os.File) *output { return &output{file: f, fd: fdOf(f)} }

// waitMillis is how long a write waits before it looks whether it is still wanted.
const waitMillis = 100

func (o *output) Write(p []byte) (n int, err error) {
	poll := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLOUT}}
	for n < len(p) {
		if o.shut.Load() {
			return n, io.ErrClosedPipe
		}
		ready, err := unix.Poll(poll, waitMillis)
		if err == unix.EINTR || err == nil && ready == 0 {
			continue
		}
		if err != nil {
			return n, err
		}
		m, err := unix.Write(o.fd, p[n:min(len(p), n+atOnce)])
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

// cut has a write that goes on end.
func (o *output) cut() { o.shut.Store(true) }

// close gives the output back.
func (o *output) close() error { return o.file.Close() }

// fdOf gives a file's descriptor and leaves it as it is; os.File.Fd may have it block from then on.
func fdOf(f *os.File) (fd int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1
	}
	_ = raw.Control(func(n uintptr) { fd = int(n) })
	return fd
}

// An input is a client's input that another process lent us.
type input struct {
	file *os.File
	fd   int
	// polled says that the runtime waits for it. Where it cannot, a terminal for one, it is asked from time to time whether
	// it is still wanted.
	polled bool
	shut   atomic.Bool
}

func newInput(f *os.File) *input {
	return &input{file: f, fd: fdOf(f), polled: f.SetReadDeadline(time.Time{}) == nil}
}

func (in *input) Read(p []byte) (int, error) {
	poll := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}}
	for !in.polled {
		if in.shut.Load() {
			return 0, io.ErrClosedPipe
		}
		if ready, err := unix.Poll(poll, waitMillis); err == nil && ready > 0 {
			break
		}
	}
	return in.file.Read(p)
}

// stop has a read that waits end.
func (in *input) stop() {
	in.shut.Store(true)
	_ = in.file.SetReadDeadline(time.Now())
}

// close gives the input back.
func (in *input) close() error { return in.file.Close() }
