package transport

// maxAtomicWrite is the largest size in bytes of a write that a pipe accepts as a whole: PIPE_BUF, see pipe(7).
const maxAtomicWrite = 4096
