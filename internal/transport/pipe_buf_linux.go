package transport

// maxAtomicWrite is how many bytes a pipe takes as a whole: PIPE_BUF, see pipe(7).
const maxAtomicWrite = 4096
