package terminal

import "golang.org/x/sys/unix"

// forget drops what was typed and not read yet.
func forget(fd int) error {
	const read = 1 // FREAD of sys/fcntl.h
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read)
}
