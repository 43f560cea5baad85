package spool

import (
	"os"
	"runtime/debug"
)

const (
	// window is how much of a file is in memory at a time, and how much room is made in it ahead.
	window = 256 << 10
	// mostMapped is how long a frame may be that is written in memory.
	mostMapped = 32 << 10
)

// A room is a file that frames are written into one after the other. Where the system can, it makes room ahead, of zeros, and
// writes in memory that is the file's: what stands there is the system's, as what was written is, and outlives the process; and
// it costs no call of the system. A frame that does not fit in there, and every one where there is no such memory, or no disk to
// make room on, is written the usual way, to the same place.
type room struct {
	f *os.File
	// mem is what of the file is in memory, from the place from on. It is of no use to write there where plain is set.
	mem   []byte
	from  int64
	plain bool
}

// write writes a frame at a place. After an error it may be there in part.
func (r *room) write(at int64, frame []byte) error {
	if !r.plain && len(frame) <= mostMapped {
		if at+int64(len(frame)) > r.from+int64(len(r.mem)) {
			r.move(at)
		}
		if !r.plain {
			if r.put(int(at-r.from), frame) {
				return nil
			}
			r.forgo()
		}
	}
	_, err := r.f.WriteAt(frame, at)
	return err
}

// move takes the part of the file into memory that begins with the page of a place.
func (r *room) move(at int64) {
	r.release()
	r.from = at &^ int64(os.Getpagesize()-1)
	var err error
	if r.mem, err = mapped(r.f, r.from, window); err != nil {
		r.forgo()
	}
}

// put writes a frame in memory: what it carries first, so that a frame which the end of the process cuts off has no length. It is
// false where the file has no such place any more, since somebody cut it, or the disk could not give what it had promised.
func (r *room) put(i int, frame []byte) (ok bool) {
	return unbroken(func() {
		copy(r.mem[i+Header:], frame[Header:])
		copy(r.mem[i:], frame[:Header])
	})
}

// ready has so many bytes of the room behind a place be written without delay, as far as they are in memory: the system gives a page of
// a file for writing when something is first written there, and again after it took the page to the disk, which takes many times as
// long as to write a frame.
func (r *room) ready(at, most int64) {
	page := int64(os.Getpagesize())
	unbroken(func() { // a room that is broken is given up when a frame is to be written there
		for i := at - r.from; i < min(at-r.from+most, int64(len(r.mem))); i = i&^(page-1) + page {
			r.mem[i] = 0 // as it is
		}
	})
}

// unbroken does something with memory that is a file's, and says whether the file had all of it.
func unbroken(do func()) (ok bool) {
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

// forgo has all that follows written the usual way.
func (r *room) forgo() {
	r.release()
	r.plain = true
}

func (r *room) release() {
	if r.mem != nil {
		unmap(r.mem)
	}
	r.mem, r.from = nil, 0
}

// cut takes off what comes after a place.
func (r *room) cut(at int64) error {
	r.forgo()
	return r.f.Truncate(at)
}

// close closes the file, which ends at a place.
func (r *room) close(at int64) {
	r.release()
	_ = r.f.Truncate(at) // where that fails there are zeros, which are no frame
	_ = r.f.Close()      // all writes have succeeded
}
