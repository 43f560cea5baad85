package spool

import (
	"os"
	"runtime/debug"
)

const (
	// window is how much of a file is in memory at a time, and how much room is made in it ahead.
	window = 256 << 10
	// maxMappedFrame is how long a frame may be that is written in memory.
	maxMappedFrame = 32 << 10
)

// A mappedFile is a file that frames are written into one after the other. Where the system can, it makes room ahead,
// of zeros, and writes in memory that is the file's: what stands there is the system's, as what was written is, and
// outlives the process; and it costs no call of the system. A frame that does not fit in there, and every one where
// there is no such memory, or no disk to make room on, is written the usual way, to the same place.
type mappedFile struct {
	file *os.File
	// mem is what of the file is in memory, from the place from on. It is of no use to write there where plain is set.
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

// copyFrame writes a frame in memory: what it carries first, so that a frame which the end of the process cuts off has
// no length. It is false where the file has no such place any more, since somebody cut it, or the disk could not give
// what it had promised.
func (r *mappedFile) copyFrame(i int, frame []byte) (ok bool) {
	return catchPageFault(func() {
		copy(r.mem[i+FrameHeader:], frame[FrameHeader:])
		copy(r.mem[i:], frame[:FrameHeader])
	})
}

// prefault has so many bytes of the room behind a place be written without delay, as far as they are in memory: the
// system gives a page of a file for writing when something is first written there, and again after it took the page to
// the disk, which takes many times as long as to write a frame.
func (r *mappedFile) prefault(at, most int64) {
	page := int64(os.Getpagesize())
	catchPageFault(func() { // a room that is broken is given up when a frame is to be written there
		for i := at - r.windowStart; i < min(at-r.windowStart+most, int64(len(r.mem))); i = i&^(page-1) + page {
			r.mem[i] = 0 // as it is
		}
	})
}

// catchPageFault does something with memory that is a file's, and says whether the file had all of it.
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

// truncate takes off what comes after a place.
func (r *mappedFile) truncate(at int64) error {
	r.stopMapping()
	return r.file.Truncate(at)
}

// close closes the file, which ends at a place.
func (r *mappedFile) close(at int64) {
	r.unmapWindow()
	_ = r.file.Truncate(at) // where that fails there are zeros, which are no frame
	_ = r.file.Close()      // all writes have succeeded
}
