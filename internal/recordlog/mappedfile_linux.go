package recordlog

import (
	"os"
	"syscall"
)

// mapFile allocates size bytes of zeros in a file and maps them into memory. They begin at the position from, which
// must be the beginning of a page.
func mapFile(f *os.File, from int64, size int) ([]byte, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var mem []byte
	var failure error
	err = raw.Control(func(fd uintptr) {
		// Allocate the blocks now: a full disk then causes an error here, and not a signal while a frame is written.
		if failure = syscall.Fallocate(int(fd), 0, from, int64(size)); failure == nil {
			mem, failure = syscall.Mmap(int(fd), from, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		}
	})
	if err == nil {
		err = failure
	}
	return mem, err
}

func unmapMemory(mem []byte) { _ = syscall.Munmap(mem) }
