//go:build unix && !linux

package transport

import (
	"io"
	"os"
)

// NewPipeReader returns f.
func NewPipeReader(f *os.File) io.Reader { return f }

// writeWhole writes a message of at most maxAtomicWrite bytes to a pipe, if the pipe has space for it now. It reports
// whether it has written the message.
func writeWhole(fd uintptr, message []byte) bool { return pollAndWrite(int(fd), message) }
