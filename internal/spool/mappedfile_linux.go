package spool

import (
	"os"
	"syscall"
)

// mapFile makes so much room in a file from a page on, which is zeros where nothing was written, and gives it as
// memory.
func mapFile(f *os.File, from int64, size int) ([]byte, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var mem []byte
	var failure error
	err = raw.Control(func(fd uintptr) {
		// The blocks are taken now: a disk that is full says so here, and not with a signal in the midst of a frame.
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
