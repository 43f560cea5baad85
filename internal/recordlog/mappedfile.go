package recordlog

import (
	"os"
	"runtime/debug"
)

const (
	// window is the size of the part of a file that is mapped into memory. It is also the size by which the file is
	// extended.
	window = 256 << 10
	// maxMappedFrame is the maximum length of a frame that is written through mapped memory.
	maxMappedFrame = 32 << 10
)

// A mappedFile is a file to which frames are appended. Normally it reserves space in the file, fills it with zeros,
// and copies frames into mapped memory without a system call. The copied bytes belong to the operating system, as
// after a write, and survive the end of the process. A frame longer than maxMappedFrame is written with a system
// call. If mapping fails or the disk is full, all later frames are written with system calls.
type mappedFile struct {
	file *os.File
	// mem is the mapped part of the file, which begins at position windowStart. If unmapped is set, frames are not
	// written through mem.
	mem         []byte
	windowStart int64
	unmapped    bool
}

// write writes a frame at a position. After an error the file may contain a part of the frame.
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

// moveWindow maps window bytes of the file into memory. The mapped part begins with the page that contains the given
// position.
func (r *mappedFile) moveWindow(at int64) {
	r.unmapWindow()
	r.windowStart = at &^ int64(os.Getpagesize()-1)
	var err error
	if r.mem, err = mapFile(r.file, r.windowStart, window); err != nil {
		r.stopMapping()
	}
}

// copyFrame copies a frame into the mapped memory: first the content, and then the header. If the process ends
// between these two steps, the header is zero, so no incomplete frame is read later. copyFrame returns false if a
// page of the memory cannot be written, because the file was truncated or the disk is full.
func (r *mappedFile) copyFrame(i int, frame []byte) (ok bool) {
	return catchPageFault(func() {
		copy(r.mem[i+FrameHeader:], frame[FrameHeader:])
		copy(r.mem[i:], frame[:FrameHeader])
	})
}

// complete writes a tail at one position, and then the bytes end at a later one, of a frame that was written before. The
// last byte of end is written last. If the process ends before that, the frame is not complete.
func (r *mappedFile) complete(at int64, tail []byte, endAt int64, end []byte) error {
	if i, j := at-r.windowStart, endAt-r.windowStart; i >= 0 && j+int64(len(end)) <= int64(len(r.mem)) {
		last := len(end) - 1
		if catchPageFault(func() {
			copy(r.mem[i:], tail)
			copy(r.mem[j:], end[:last])
			r.mem[j+int64(last)] = end[last]
		}) {
			return nil
		}
		r.stopMapping()
	}
	if _, err := r.file.WriteAt(tail, at); err != nil {
		return err
	}
	_, err := r.file.WriteAt(end, endAt)
	return err
}

// prefault writes to each page of the mapped memory in the range at:at+most, which contains only zeros; it writes
// zeros too. So a later frame is written there without delay. The operating system prepares a page at the first write
// to it, and again after the page was written to the disk. That takes many times as long as writing a frame.
func (r *mappedFile) prefault(at, most int64) {
	page := int64(os.Getpagesize())
	catchPageFault(func() { // copyFrame handles a page that cannot be written
		for i := at - r.windowStart; i < min(at-r.windowStart+most, int64(len(r.mem))); i = i&^(page-1) + page {
			r.mem[i] = 0 // it is 0 already
		}
	})
}

// catchPageFault calls do, which uses mapped memory. It returns false if a part of that memory was not accessible.
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

// stopMapping unmaps the file. Later frames are written with system calls.
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

// truncate truncates the file at a position.
func (r *mappedFile) truncate(at int64) error {
	r.stopMapping()
	return r.file.Truncate(at)
}

// close truncates the file at a position and closes it.
func (r *mappedFile) close(at int64) {
	r.unmapWindow()
	_ = r.file.Truncate(at) // if this fails, zeros remain at the end, which are not a frame
	_ = r.file.Close()      // the error does not matter: all writes have succeeded
}
