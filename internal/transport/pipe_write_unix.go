//go:build unix

package transport

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NonblockingPipeWriter returns a function that writes a message to a pipe without waiting and reports whether it has
// written the message. The function writes nothing if the message is larger than PIPE_BUF, if the pipe has no space
// now, or if the pipe has no reader. A message above PIPE_BUF could be written in part. NonblockingPipeWriter returns
// nil if f is not a pipe.
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
