package cli

import "golang.org/x/sys/unix"

// flushInput drops input that was not read yet.
func flushInput(fd int) error {
	const read = 1 // FREAD of sys/fcntl.h
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read)
}
