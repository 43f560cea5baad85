//go:build unix

package hub

import (
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A ring is memory that a shim shares with the hub: there the hub notes what it has said to the client, in the instant after
// it was said. It outlives either of them, costs nobody a wake, and leaves no time in which a dying hub has answered and the
// shim does not know.
type ring struct {
	memory []byte
	// written counts the bytes that were ever put in, read those that were taken out.
	written, read *atomic.Uint64
	data          []byte
}

// The ring's memory begins with the two counters.
const (
	ringSize = 64 << 10
	ringHead = 16
)

// newRing makes the memory of a ring, as a file without a name.
func newRing() (*ring, *os.File, error) {
	f, err := os.CreateTemp("", "drawbridge-ring-")
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(os.Remove(f.Name()), f.Truncate(ringSize))
	var r *ring
	if err == nil {
		r, err = openRing(f)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return r, f, nil
}

// openRing maps a ring that another process made.
func openRing(f *os.File) (*ring, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != ringSize {
		return nil, errors.New("what was lent is no ring")
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &ring{
		memory: memory, data: memory[ringHead:],
		// A mapping begins at a page, so both counters are aligned.
		written: (*atomic.Uint64)(unsafe.Pointer(&memory[0])),
		read:    (*atomic.Uint64)(unsafe.Pointer(&memory[8])),
	}, nil
}

// close takes the memory away.
func (r *ring) close() {
	if r != nil && r.memory != nil {
		_ = unix.Munmap(r.memory)
		r.memory = nil
	}
}

// put notes something, of at most atOnce bytes. It says false where there is no room: then it is to be said otherwise.
func (r *ring) put(kind byte, id []byte) bool {
	written, need := r.written.Load(), uint64(3+len(id))
	if len(id) > atOnce || written-r.read.Load()+need > uint64(len(r.data)) {
		return false
	}
	head := [3]byte{kind}
	binary.LittleEndian.PutUint16(head[1:], uint16(len(id)))
	r.copyIn(written, head[:])
	r.copyIn(written+3, id)
	r.written.Store(written + need) // what was copied counts from here on
	return true
}

// drain takes everything out.
func (r *ring) drain(each func(kind byte, id []byte)) {
	at, written := r.read.Load(), r.written.Load()
	for at+3 <= written && written-at <= uint64(len(r.data)) {
		var head [3]byte
		r.copyOut(at, head[:])
		id := make([]byte, binary.LittleEndian.Uint16(head[1:]))
		r.copyOut(at+3, id)
		at += uint64(3 + len(id))
		each(head[0], id)
	}
	r.read.Store(written)
}

func (r *ring) copyIn(at uint64, p []byte) {
	i := int(at % uint64(len(r.data)))
	n := copy(r.data[i:], p)
	copy(r.data, p[n:])
}

func (r *ring) copyOut(at uint64, p []byte) {
	i := int(at % uint64(len(r.data)))
	n := copy(p, r.data[i:])
	copy(p[n:], r.data)
}
