//go:build unix && !linux

package transport

// maxAtomicWrite is a size that a pipe accepts as a whole, in bytes: _POSIX_PIPE_BUF, the value of macOS.
const maxAtomicWrite = 512
