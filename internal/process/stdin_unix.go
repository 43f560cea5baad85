//go:build unix

package process

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// PolledStdin returns a file that reads from in through the runtime's network poller, if in is a pipe or a socket. A
// waiting read then does not block a thread; to wake a thread would cost more than to process a small call. If in is a
// terminal or a regular file, or the same file as out, PolledStdin returns in unchanged. Otherwise the result has a file
// descriptor of its own: a shared one would be closed when either file is garbage collected.
func PolledStdin(in, out *os.File) *os.File {
	from, err := in.Stat()
	if err != nil || from.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return in
	}
	if to, err := out.Stat(); err != nil || os.SameFile(from, to) {
		return in
	}
	if err := syscall.SetNonblock(int(in.Fd()), true); err != nil {
		return in
	}
	own, err := unix.FcntlInt(in.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return in
	}
	return os.NewFile(uintptr(own), in.Name())
}
