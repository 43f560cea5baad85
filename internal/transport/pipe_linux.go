package transport

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The reads and writes in this file never wait in the system. Therefore they can use raw system calls, of which the
// scheduler is not told. To tell the scheduler would wake the thread that watches over system calls, and that thread
// would then use more time than the system call.

// NewPipeReader returns a reader of f that costs less than f.Read. f must be a pipe or a socket that the runtime's
// network poller waits for; otherwise NewPipeReader returns f.
func NewPipeReader(f *os.File) io.Reader {
	// A file that the poller does not wait for has no deadlines. The deadline for reads is in use, so it is not set.
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 || f.SetWriteDeadline(time.Time{}) != nil {
		return f
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return f
	}
	r := &pipeReader{f: f, raw: raw}
	r.try = r.tryRead
	return r
}

// A pipeReader reads from a pipe or a socket. One goroutine at a time may use it.
type pipeReader struct {
	f   *os.File
	raw syscall.RawConn
	// p, n and errno are the argument and the results of tryRead. try is tryRead.
	p     []byte
	n     int
	errno syscall.Errno
	try   func(fd uintptr) bool
}

// Read is the method of io.Reader.
func (r *pipeReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.p = p
	err := r.raw.Read(r.try)
	r.p = nil
	switch {
	case err != nil:
		return 0, err
	case r.errno == syscall.EOPNOTSUPP, r.errno == syscall.ENOSYS: // an old kernel
		return r.f.Read(p)
	case r.errno != 0:
		return 0, &fs.PathError{Op: "read", Path: r.f.Name(), Err: r.errno}
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}

// tryRead reads once. It returns false if the pipe is empty.
func (r *pipeReader) tryRead(fd uintptr) bool {
	r.n, r.errno = transferNoWait(unix.SYS_PREADV2, fd, r.p)
	return r.errno != syscall.EAGAIN
}

// transferNoWait reads into p or writes p, without waiting. trap is SYS_PREADV2 or SYS_PWRITEV2. The flag RWF_NOWAIT
// is used and not O_NONBLOCK, since other processes may have the same open file and may change its flags. p must not be
// empty.
func transferNoWait(trap, fd uintptr, p []byte) (int, syscall.Errno) {
	const currentPosition = ^uintptr(0)
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	for {
		n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&v)), 1, currentPosition, currentPosition,
			unix.RWF_NOWAIT)
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// writeWhole writes a message of at most maxAtomicWrite bytes to a pipe, if the pipe has space for it now. It reports
// whether it has written the message.
func writeWhole(fd uintptr, message []byte) bool {
	n, errno := transferNoWait(unix.SYS_PWRITEV2, fd, message)
	switch errno {
	case syscall.EOPNOTSUPP, syscall.ENOSYS: // an old kernel
		return pollAndWrite(int(fd), message)
	}
	return errno == 0 && n == len(message)
}
