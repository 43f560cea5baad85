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

// A sharedRing is memory that a shim shares with the hub, in two parts. In the inbox is what the hub has read of the
// client's input and not taken note of; it reads straight into it. In the ring are notes of what client and hub have
// said. Both outlive either process and cost nobody a wake, and they leave no instant in which something was read, or
// said, and the other process cannot know.
type sharedRing struct {
	memory []byte
	// ring is the data of the ring; written counts the bytes that were ever put in, read those that were taken out.
	ring          []byte
	written, read *atomic.Uint64
	// inbox is the data of the inbox; come counts the bytes that were ever read into it, gone those of lines that were
	// noted. Outside of what is between them it is zero, which no line holds: a byte that was read and not counted
	// shows.
	inbox                    []byte
	inboxRead, inboxConsumed *atomic.Uint64

	mu      sync.Mutex // is held while a note is put in
	scanned uint64     // up to here there is no line end in the inbox
}

// The layout of the memory: four counters, the ring, the inbox. What was never used takes no memory.
const (
	sharedHeadSize = 32
	ringSize       = 1 << 20
	inboxSize      = 4 << 20
	sharedSize     = sharedHeadSize + ringSize + inboxSize
	// recordHeadSize is the kind and the length before each note.
	recordHeadSize = 5
)

// newSharedRing makes a slate, as a file without a name.
func newSharedRing() (*sharedRing, *os.File, error) {
	f, err := newMemFile("drawbridge-slate")
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

// openSharedRing maps a slate that another process made.
func openSharedRing(f *os.File) (*sharedRing, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != sharedSize {
		return nil, errors.New("what was lent is no slate")
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	// A mapping begins at a page, so the counters are aligned.
	counter := func(n int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&memory[8*n])) }
	return &sharedRing{
		memory: memory, ring: memory[sharedHeadSize : sharedHeadSize+ringSize], inbox: memory[sharedHeadSize+ringSize:],
		written: counter(0), read: counter(1), inboxRead: counter(2), inboxConsumed: counter(3),
	}, nil
}

// close takes the memory away.
func (s *sharedRing) close() {
	if s != nil && s.memory != nil {
		_ = unix.Munmap(s.memory)
		s.memory = nil
	}
}

// closed says whether the memory is gone.
func (s *sharedRing) closed() bool { return s.memory == nil }

// putRecord takes a note. It says false where there is no room until the other end has read. full says that it should,
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
	s.written.Store(written + need) // what was copied counts from here on
	return true, used+need > ringSize/2
}

// readRecords reads all notes.
func (s *sharedRing) readRecords(each func(kind byte, text []byte)) {
	at, written := s.read.Load(), s.written.Load()
	for at+recordHeadSize <= written && written-at <= ringSize {
		var head [recordHeadSize]byte
		copyFromRing(s.ring, at, head[:])
		size := binary.LittleEndian.Uint32(head[1:])
		if size > maxRecord {
			break // nobody writes that
		}
		text := make([]byte, size)
		copyFromRing(s.ring, at+recordHeadSize, text)
		at += recordHeadSize + uint64(size)
		each(head[0], text)
	}
	s.read.Store(written)
}

// loadInbox puts what another hub had read into a new slate. It came out of one, so it fits.
func (s *sharedRing) loadInbox(rest []byte) {
	copyToRing(s.inbox, s.inboxRead.Load(), rest)
	s.inboxRead.Add(uint64(len(rest)))
}

// errInboxFull is for a line that the inbox does not hold.
var errInboxFull = errors.New("the inbox is full")

// fillInbox reads more of the input, once.
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

// nextLine gives a copy of the next whole line, with its end. It stays in the inbox until take.
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

// consumeInbox takes so many bytes out of the inbox.
func (s *sharedRing) consumeInbox(n int) {
	gone := s.inboxConsumed.Load()
	i := gone % inboxSize
	first := min(uint64(n), inboxSize-i)
	clear(s.inbox[i : i+first])
	clear(s.inbox[:uint64(n)-first])
	s.inboxConsumed.Store(gone + uint64(n))
}

// inboxOffset is where the inbox begins, in bytes of all that was ever read.
func (s *sharedRing) inboxOffset() uint64 { return s.inboxConsumed.Load() }

// unconsumedInbox gives what is in the inbox from a place on: what was counted, and what the hub had no time to count.
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
