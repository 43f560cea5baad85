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
// nil if f is not a pipe. The function must not be called by several goroutines at once.
func NonblockingPipeWriter(f *os.File) func(message []byte) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var message []byte
	var written bool
	write := func(fd uintptr) { written = writeWhole(fd, message) }
	return func(m []byte) bool {
		if len(m) == 0 || len(m) > maxAtomicWrite {
			return false
		}
		message, written = m, false
		err := raw.Control(write)
		message = nil
		return written && err == nil
	}
}

// pollAndWrite writes a message to a pipe if the pipe has space for all of it. It reports whether it has written the
// message. The open file may be in blocking mode.
func pollAndWrite(fd int, message []byte) bool {
	room := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if n, err := unix.Poll(room, 0); err != nil || n != 1 || room[0].Revents != unix.POLLOUT {
		return false
	}
	n, err := unix.Write(fd, message)
	return err == nil && n == len(message)
}
