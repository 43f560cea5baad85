//go:build unix

package hub

import (
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// An output is a client's output that another process lent us. Whether it blocks is a property that all who have it share,
// and is left as it is: so it is asked before each write whether it takes something.
type output struct {
	file *os.File
	fd   int
	shut atomic.Bool
}

// canLend says whether a shim can lend its output here.
const canLend = true

func newOutput(f *os.File) *output { return &output{file: f, fd: int(f.Fd())} }

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
