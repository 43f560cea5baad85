//go:build unix

package transport

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NonblockingPipeWriter returns a function that writes a message to a pipe without waiting, and reports whether it did.
// It does not write a message above PIPE_BUF, which could go out in part, nor one for which the pipe has no room now,
// nor to a pipe without a reader. It returns nil if f is not a pipe.
func NonblockingPipeWriter(f *os.File) func(message []byte) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func(message []byte) (out bool) {
		if len(message) > maxAtomicWrite {
			return false
		}
		err := raw.Control(func(fd uintptr) {
			room := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			if n, err := unix.Poll(room, 0); err != nil || n != 1 || room[0].Revents != unix.POLLOUT {
				return
			}
			n, err := unix.Write(int(fd), message)
			out = err == nil && n == len(message)
		})
		return out && err == nil
	}
}
