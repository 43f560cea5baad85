//go:build unix && !linux

package transport

// maxAtomicWrite is how many bytes a pipe takes as a whole at least: _POSIX_PIPE_BUF, which is what macOS has.
const maxAtomicWrite = 512
