package recordlog

import (
	"os"
	"runtime/debug"
)

const (
	// window is the size of the part of a file that is mapped into memory, and the size by which the file is extended.
	window = 256 << 10
	// maxMappedFrame is the largest frame that is written through mapped memory.
	maxMappedFrame = 32 << 10
)

// A mappedFile is a file to which frames are appended. If the system can, it allocates zeros ahead and writes into
// mapped memory: the bytes belong to the system, as after a write, and outlive the process, without a system call. A
// frame that does not fit there is written with a system call to the same place; so are all frames without mapped
// memory or disk space.
type mappedFile struct {
	file *os.File
	// mem is the mapped part of the file, from the position from on. With plain set it must not be written.
	mem         []byte
	windowStart int64
	unmapped    bool
}

// write writes a frame at a place. After an error it may be there in part.
func (r *mappedFile) write(at int64, frame []byte) error {
	if !r.unmapped && len(frame) <= maxMappedFrame {
		if at+int64(len(frame)) > r.windowStart+int64(len(r.mem)) {
			r.moveWindow(at)
		}
		if !r.unmapped {
			if r.copyFrame(int(at-r.windowStart), frame) {
				return nil
			}
			r.stopMapping()
		}
	}
	_, err := r.file.WriteAt(frame, at)
	return err
}

// moveWindow takes the part of the file into memory that begins with the page of a place.
func (r *mappedFile) moveWindow(at int64) {
	r.unmapWindow()
	r.windowStart = at &^ int64(os.Getpagesize()-1)
	var err error
	if r.mem, err = mapFile(r.file, r.windowStart, window); err != nil {
		r.stopMapping()
	}
}

// copyFrame writes a frame into the mapped memory: the content first, so that a frame cut off by the end of the process
// has no length. It reports false if the memory has no file behind it any more: the file was cut, or the disk has no
// space.
func (r *mappedFile) copyFrame(i int, frame []byte) (ok bool) {
	return catchPageFault(func() {
		copy(r.mem[i+FrameHeader:], frame[FrameHeader:])
		copy(r.mem[i:], frame[:FrameHeader])
	})
}

// prefault makes the next bytes after a position writable without delay. The system prepares a page at its first write,
// and again after it was written to the disk, which takes many times as long as to write a frame.
func (r *mappedFile) prefault(at, most int64) {
	page := int64(os.Getpagesize())
	catchPageFault(func() { // a room that is broken is given up when a frame is to be written there
		for i := at - r.windowStart; i < min(at-r.windowStart+most, int64(len(r.mem))); i = i&^(page-1) + page {
			r.mem[i] = 0 // as it is
		}
	})
}

// catchPageFault calls do, which uses mapped memory, and reports whether the file had all of it.
func catchPageFault(do func()) (ok bool) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
			ok = false
		}
	}()
	do()
	return true
}

// stopMapping has all that follows written the usual way.
func (r *mappedFile) stopMapping() {
	r.unmapWindow()
	r.unmapped = true
}

func (r *mappedFile) unmapWindow() {
	if r.mem != nil {
		unmapMemory(r.mem)
	}
	r.mem, r.windowStart = nil, 0
}

// truncate cuts the file at a position.
func (r *mappedFile) truncate(at int64) error {
	r.stopMapping()
	return r.file.Truncate(at)
}

// close closes the file, which ends at a place.
func (r *mappedFile) close(at int64) {
	r.unmapWindow()
	_ = r.file.Truncate(at) // if that fails, zeros remain, which are not a frame
	_ = r.file.Close()      // all writes have succeeded
}
