package cli

import "golang.org/x/sys/unix"

// flushInput drops input that was not read yet.
func flushInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
