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

	"github.com/drawbridge-mcp/drawbridge/hub/memfile"
	"golang.org/x/sys/unix"
)

// A slate is memory that a shim shares with the hub, in two parts. In the inbox is what the hub has read of the client's input
// and not taken note of; it reads straight into it. In the ring are notes of what client and hub have said. Both outlive
// either process and cost nobody a wake, and they leave no instant in which something was read, or said, and the other
// process cannot know.
type slate struct {
	memory []byte
	// ring is the data of the ring; written counts the bytes that were ever put in, read those that were taken out.
	ring          []byte
	written, read *atomic.Uint64
	// inbox is the data of the inbox; come counts the bytes that were ever read into it, gone those of lines that were noted.
	// Outside of what is between them it is zero, which no line holds: a byte that was read and not counted shows.
	inbox      []byte
	come, gone *atomic.Uint64

	mu   sync.Mutex // is held while a note is put in
	seen uint64     // up to here there is no line end in the inbox
}

// The layout of the memory: four counters, the ring, the inbox. What was never used takes no memory.
const (
	slateHead = 32
	ringSize  = 1 << 20
	inboxSize = 4 << 20
	slateSize = slateHead + ringSize + inboxSize
	// noteHead is the kind and the length before each note.
	noteHead = 5
)

// newSlate makes a slate, as a file without a name.
func newSlate() (*slate, *os.File, error) {
	f, err := memfile.New("drawbridge-slate")
	if err == nil {
		err = f.Truncate(slateSize)
	}
	var s *slate
	if err == nil {
		s, err = openSlate(f)
	}
	if err != nil {
		closeAll([]*os.File{f})
		return nil, nil, fmt.Errorf("make memory to share with the hub: %w", err)
	}
	return s, f, nil
}

// openSlate maps a slate that another process made.
func openSlate(f *os.File) (*slate, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != slateSize {
		return nil, errors.New("what was lent is no slate")
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, slateSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	// A mapping begins at a page, so the counters are aligned.
	counter := func(n int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&memory[8*n])) }
	return &slate{
		memory: memory, ring: memory[slateHead : slateHead+ringSize], inbox: memory[slateHead+ringSize:],
		written: counter(0), read: counter(1), come: counter(2), gone: counter(3),
	}, nil
}

// close takes the memory away.
func (s *slate) close() {
	if s != nil && s.memory != nil {
		_ = unix.Munmap(s.memory)
		s.memory = nil
	}
}

// closed says whether the memory is gone.
func (s *slate) closed() bool { return s.memory == nil }

// put takes a note. It says false where there is no room until the other end has read. full says that it should, soon.
func (s *slate) put(kind byte, text []byte) (ok, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written, need := s.written.Load(), uint64(noteHead+len(text))
	used := written - s.read.Load()
	if len(text) > noteMost || used+need > ringSize {
		return false, true
	}
	head := [noteHead]byte{kind}
	binary.LittleEndian.PutUint32(head[1:], uint32(len(text)))
	copyIn(s.ring, written, head[:])
	copyIn(s.ring, written+noteHead, text)
	s.written.Store(written + need) // what was copied counts from here on
	return true, used+need > ringSize/2
}

// drain reads all notes.
func (s *slate) drain(each func(kind byte, text []byte)) {
	at, written := s.read.Load(), s.written.Load()
	for at+noteHead <= written && written-at <= ringSize {
		var head [noteHead]byte
		copyOut(s.ring, at, head[:])
		size := binary.LittleEndian.Uint32(head[1:])
		if size > noteMost {
			break // nobody writes that
		}
		text := make([]byte, size)
		copyOut(s.ring, at+noteHead, text)
		at += noteHead + uint64(size)
		each(head[0], text)
	}
	s.read.Store(written)
}

// load puts what another hub had read into a new slate. It came out of one, so it fits.
func (s *slate) load(rest []byte) {
	copyIn(s.inbox, s.come.Load(), rest)
	s.come.Add(uint64(len(rest)))
}

// errInboxFull is for a line that the inbox does not hold.
var errInboxFull = errors.New("the inbox is full")

// fill reads more of the input, once.
func (s *slate) fill(in io.Reader) error {
	come := s.come.Load()
	free := inboxSize - (come - s.gone.Load())
	if free == 0 {
		return errInboxFull
	}
	i := come % inboxSize
	n, err := in.Read(s.inbox[i:min(inboxSize, i+free)])
	if n > 0 {
		s.come.Store(come + uint64(n))
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// line gives a copy of the next whole line, with its end. It stays in the inbox until take.
func (s *slate) line() ([]byte, bool) {
	gone, come := s.gone.Load(), s.come.Load()
	for at := max(s.seen, gone); at < come; {
		i := at % inboxSize
		part := s.inbox[i:min(inboxSize, i+come-at)]
		if j := bytes.IndexByte(part, '\n'); j >= 0 {
			s.seen = at + uint64(j)
			return s.copy(gone, at+uint64(j)+1), true
		}
		at += uint64(len(part))
		s.seen = at
	}
	return nil, false
}

func (s *slate) copy(from, to uint64) []byte {
	text := make([]byte, to-from)
	copyOut(s.inbox, from, text)
	return text
}

// take takes so many bytes out of the inbox.
func (s *slate) take(n int) {
	gone := s.gone.Load()
	i := gone % inboxSize
	first := min(uint64(n), inboxSize-i)
	clear(s.inbox[i : i+first])
	clear(s.inbox[:uint64(n)-first])
	s.gone.Store(gone + uint64(n))
}

// place is where the inbox begins, in bytes of all that was ever read.
func (s *slate) place() uint64 { return s.gone.Load() }

// rest gives what is in the inbox from a place on: what was counted, and what the hub had no time to count.
func (s *slate) rest(from uint64) []byte {
	from = max(from, s.gone.Load())
	end := s.come.Load()
	for end-from < inboxSize && s.inbox[end%inboxSize] != 0 {
		end++
	}
	if end <= from {
		return nil
	}
	return s.copy(from, end)
}

func copyIn(to []byte, at uint64, p []byte) {
	i := at % uint64(len(to))
	n := copy(to[i:], p)
	copy(to, p[n:])
}

func copyOut(from []byte, at uint64, p []byte) {
	i := at % uint64(len(from))
	n := copy(p, from[i:])
	copy(p[n:], from)
}
