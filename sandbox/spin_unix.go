//go:build unix

package sandbox

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spinTime is how long a spinReader looks for data before it sleeps. A script that calls one tool after the other makes
// its next request within this time; to wake a sleeping thread takes as long again.
const spinTime = 80 * time.Microsecond

// A spinReader reads from a pipe. It looks for data for a short time before it sleeps, if the data came that soon the last
// time.
type spinReader struct {
	pipe syscall.RawConn
	file *os.File
	// soon reports that the last data came within spinTime.
	soon bool
	// mayTurn takes one of the tokens for readers that look at the same time; done gives it back.
	turns chan struct{}
}

// newSpinReader returns a reader of a pipe that may be read from one goroutine. turns holds a token for each reader that
// looks at the moment.
func newSpinReader(pipe io.Reader, turns chan struct{}) io.Reader {
	file, ok := pipe.(*os.File)
	if !ok {
		return pipe
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return pipe
	}
	return &spinReader{pipe: raw, file: file, turns: turns}
}

// Read implements io.Reader.
func (r *spinReader) Read(b []byte) (n int, err error) {
	start := time.Now()
	slept := false
	spin := r.soon && r.takeTurn()
	readErr := r.pipe.Read(func(fd uintptr) bool {
		for {
			n, err = unix.Read(int(fd), b)
			switch {
			case errors.Is(err, unix.EINTR):
			case !errors.Is(err, unix.EAGAIN):
				return true
			case slept || !spin || time.Since(start) > spinTime:
				slept = true
				return false
			}
		}
	})
	if spin {
		<-r.turns
	}
	r.soon = time.Since(start) < spinTime
	switch {
	case readErr != nil:
		return 0, readErr
	case err != nil:
		return 0, &os.PathError{Op: "read", Path: r.file.Name(), Err: err}
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// takeTurn reports whether this reader may look for data, and not only sleep.
func (r *spinReader) takeTurn() bool {
	select {
	case r.turns <- struct{}{}:
		return true
	default:
		return false
	}
}
