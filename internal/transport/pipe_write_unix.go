//go:build unix

package transport

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NonblockingPipeWriter gives what writes a message to a pipe at once, and says whether it did: not a message that is
// too large to go out whole (PIPE_BUF), nor one that the pipe has no room for now, nor one to a pipe that nobody
// reads. It is nil for what is no pipe.
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
