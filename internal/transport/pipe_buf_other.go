//go:build unix && !linux

package transport

// maxAtomicWrite is a size in bytes of a write that a pipe accepts as a whole: _POSIX_PIPE_BUF, which is also the value
// on macOS.
const maxAtomicWrite = 512
