package transport

// maxAtomicWrite is the largest write that a pipe accepts as a whole, in bytes: PIPE_BUF, see pipe(7).
const maxAtomicWrite = 4096
