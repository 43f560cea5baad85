package hub

import (
	"os"

	"golang.org/x/sys/unix"
)

// newMemFile returns a file that exists only in memory. It needs no writable directory and no disk space.
func newMemFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
