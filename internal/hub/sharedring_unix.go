//go:build unix

package hub

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sharedRing is memory that a shim and the hub share. It has two parts. The inbox is the buffer into which the hub
// reads the client's input; it contains bytes that are not recorded yet. The ring contains records of the lines in both
// directions. If one of the two processes dies, the other process can still read both parts. So it knows at any time
// what the dead process had read or written. Using the parts needs no system call.
type sharedRing struct {
	memory []byte
	// ring is the memory of the ring. written counts all bytes that were ever written to the ring, and read counts all
	// bytes that were ever read from it.
	ring          []byte
	written, read *atomic.Uint64
	// inbox is the memory of the inbox. inboxRead counts all bytes of input that were ever read into it, and
	// inboxConsumed counts the bytes that were removed from it. The bytes between these two positions are in use; all
	// other bytes of the inbox are zero, and no line contains a zero byte. So a byte that a dying hub has read but not
	// counted can be recognised.
	inbox                    []byte
	inboxRead, inboxConsumed *atomic.Uint64

	mu      sync.Mutex // held while a record is written
	scanned uint64     // the inbox has no line end before this position
}

// The layout of the memory: four counters, the ring, the inbox. Pages that were never used occupy no memory.
const (
	sharedHeadSize = 32
	ringSize       = 1 << 20
	inboxSize      = 4 << 20
	sharedSize     = sharedHeadSize + ringSize + inboxSize
	// recordHeadSize is the size of the kind and the length before each record.
	recordHeadSize = 5
)

// newSharedRing creates a ring in a file without a name, and returns the ring and the file.
func newSharedRing() (*sharedRing, *os.File, error) {
	f, err := newMemFile("drawbridge-ring")
	if err == nil {
		err = f.Truncate(sharedSize)
	}
	var s *sharedRing
	if err == nil {
		s, err = openSharedRing(f)
	}
	if err != nil {
		closeAll([]*os.File{f})
		return nil, nil, fmt.Errorf("make memory to share with the hub: %w", err)
	}
	return s, f, nil
}

// openSharedRing maps the file of a ring into memory. Usually another process created the file.
func openSharedRing(f *os.File) (*sharedRing, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != sharedSize {
		return nil, errors.New("the passed file is not a shared ring")
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	// A mapping begins at a page boundary, so the counters are aligned.
	counter := func(n int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&memory[8*n])) }
	return &sharedRing{
		memory: memory, ring: memory[sharedHeadSize : sharedHeadSize+ringSize], inbox: memory[sharedHeadSize+ringSize:],
		written: counter(0), read: counter(1), inboxRead: counter(2), inboxConsumed: counter(3),
	}, nil
}

// close unmaps the memory.
func (s *sharedRing) close() {
	if s != nil && s.memory != nil {
		_ = unix.Munmap(s.memory)
		s.memory = nil
	}
}

// closed reports whether the memory was unmapped.
func (s *sharedRing) closed() bool { return s.memory == nil }

// putRecord appends a record to the ring. It returns ok = false if the ring has no room; then the other process must
// read the ring first. full reports whether the ring is more than half full, so that the other process should read it
// soon.
func (s *sharedRing) putRecord(kind byte, text []byte) (ok, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written, need := s.written.Load(), uint64(recordHeadSize+len(text))
	used := written - s.read.Load()
	if len(text) > maxRecord || used+need > ringSize {
		return false, true
	}
	head := [recordHeadSize]byte{kind}
	binary.LittleEndian.PutUint32(head[1:], uint32(len(text)))
	copyToRing(s.ring, written, head[:])
	copyToRing(s.ring, written+recordHeadSize, text)
	s.written.Store(written + need) // publishes the copied bytes
	return true, used+need > ringSize/2
}

// readRecords calls each with every record in the ring, in order, and removes the records.
func (s *sharedRing) readRecords(each func(kind byte, text []byte)) {
	at, written := s.read.Load(), s.written.Load()
	for at+recordHeadSize <= written && written-at <= ringSize {
		var head [recordHeadSize]byte
		copyFromRing(s.ring, at, head[:])
		size := binary.LittleEndian.Uint32(head[1:])
		if size > maxRecord {
			break // not a valid record
		}
		text := make([]byte, size)
		copyFromRing(s.ring, at+recordHeadSize, text)
		at += recordHeadSize + uint64(size)
		each(head[0], text)
	}
	s.read.Store(written)
}

// loadInbox copies rest, input that an earlier hub has read but not recorded, into a new inbox. rest was in an inbox
// before, so it fits.
func (s *sharedRing) loadInbox(rest []byte) {
	copyToRing(s.inbox, s.inboxRead.Load(), rest)
	s.inboxRead.Add(uint64(len(rest)))
}

// errInboxFull reports that a line is longer than the inbox.
var errInboxFull = errors.New("the inbox is full")

// fillInbox reads once from the input into the inbox. It returns errInboxFull if the inbox has no room.
func (s *sharedRing) fillInbox(in io.Reader) error {
	come := s.inboxRead.Load()
	free := inboxSize - (come - s.inboxConsumed.Load())
	if free == 0 {
		return errInboxFull
	}
	i := come % inboxSize
	n, err := in.Read(s.inbox[i:min(inboxSize, i+free)])
	if n > 0 {
		s.inboxRead.Store(come + uint64(n))
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// nextLine returns a copy of the next whole line in the inbox, with its line feed. The line stays in the inbox until
// consumeInbox removes it. nextLine returns false if the inbox has no whole line.
func (s *sharedRing) nextLine() ([]byte, bool) {
	gone, come := s.inboxConsumed.Load(), s.inboxRead.Load()
	for at := max(s.scanned, gone); at < come; {
		i := at % inboxSize
		part := s.inbox[i:min(inboxSize, i+come-at)]
		if j := bytes.IndexByte(part, '\n'); j >= 0 {
			s.scanned = at + uint64(j)
			return s.copy(gone, at+uint64(j)+1), true
		}
		at += uint64(len(part))
		s.scanned = at
	}
	return nil, false
}

func (s *sharedRing) copy(from, to uint64) []byte {
	text := make([]byte, to-from)
	copyFromRing(s.inbox, from, text)
	return text
}

// consumeInbox removes the first n bytes from the inbox.
func (s *sharedRing) consumeInbox(n int) {
	gone := s.inboxConsumed.Load()
	i := gone % inboxSize
	first := min(uint64(n), inboxSize-i)
	clear(s.inbox[i : i+first])
	clear(s.inbox[:uint64(n)-first])
	s.inboxConsumed.Store(gone + uint64(n))
}

// inboxOffset returns the position of the inbox's first byte, counted from the first byte that was ever in this inbox.
func (s *sharedRing) inboxOffset() uint64 { return s.inboxConsumed.Load() }

// unconsumedInbox returns the content of the inbox from a position on. This includes bytes that a dying hub has read
// into the inbox but not counted in inboxRead.
func (s *sharedRing) unconsumedInbox(from uint64) []byte {
	from = max(from, s.inboxConsumed.Load())
	end := s.inboxRead.Load()
	for end-from < inboxSize && s.inbox[end%inboxSize] != 0 {
		end++
	}
	if end <= from {
		return nil
	}
	return s.copy(from, end)
}

func copyToRing(to []byte, at uint64, p []byte) {
	i := at % uint64(len(to))
	n := copy(to[i:], p)
	copy(to, p[n:])
}

func copyFromRing(from []byte, at uint64, p []byte) {
	i := at % uint64(len(from))
	n := copy(p, from[i:])
	copy(p[n:], from)
}
