//go:build unix

package process

import (
	"io/fs"
	"os"
	"syscall"
)

// PolledStdin returns a pipe or socket that is read through the runtime's poller. A waiting read then blocks no thread;
// waking one would cost more than a small call. A terminal, a file, and a socket that is also the output are returned
// as they are. The result shares the descriptor of in, which must be kept.
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
	return os.NewFile(in.Fd(), in.Name())
}
