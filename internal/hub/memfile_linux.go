package hub

import (
	"os"

	"golang.org/x/sys/unix"
)

// newMemFile makes a file that is memory and nothing else: no directory has to be writable, no disk to have room.
func newMemFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
