package terminal

import "golang.org/x/sys/unix"

// forget drops what was typed and not read yet.
func forget(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
