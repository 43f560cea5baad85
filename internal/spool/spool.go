// Package spool keeps what must not be lost until the store has it: files of one directory that are only ever added
// to, by one process each.
//
// What [Spool.Append] has taken is in the hands of the operating system when it returns: the death of the process does
// not lose it, and with Options.Sync neither does that of the machine. Whoever comes later finds the files of
// those who died ([Adopt]): a file belongs to a process as long as that holds the lock beside it.
//
// A file is frames: the length of what a frame carries and its CRC-32C (four bytes each, most significant first), then
// that. After the last one there may be zeros, which are room for more.
package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
)

// FrameHeader is how many bytes of a frame come before what it carries.
const FrameHeader = 8

const (
	// defaultMaxWaiting is how many bytes wait for the store where nobody says otherwise.
	defaultMaxWaiting = 256 << 20
	// maxFileSize is how long a file becomes before the next one is begun.
	maxFileSize = 4 << 20
	// MaxFrame bounds what one frame carries; a length beyond it is damage.
	MaxFrame = 16 << 20
	// readChunk is how much of a file is read in one go.
	readChunk = 1 << 20

	ending     = ".spool"
	lockEnding = ".lock"
	// TornSuffix is what the name of a file gets that did not end with a whole frame: it stays, for a person to look
	// at.
	TornSuffix = ".torn"
)

// ErrFull says that so much waits for the store that no more is taken.
var ErrFull = errors.New("too much waits for the store")

// errClosed says that the spool takes no more.
var errClosed = errors.New("the spool is closed")

// Options are what a spool can do without. The zero value works.
type Options struct {
	// Sync has each Append wait until the disk has what it took.
	Sync bool
	// MaxWaiting is how many bytes may wait; 0 is defaultMaxWaiting.
	MaxWaiting int64
}

// A Spool is the files of one process. Its methods may be called from several goroutines.
type Spool struct {
	dir, name string
	o         Options
	lock      *flock.Flock
	sums      *crc32.Table

	// mu guards the file that is written, nil between two; and those before it, which the store does not have yet.
	mu          sync.Mutex
	current     *mappedFile
	currentFile File
	endedFiles  []File
	fileCount   int
	waiting     int64
	closed      bool
	// prefaultedAt is where the file that is written ended when Prepare was last called.
	prefaultedAt int64
}

// A File is what is known of one file.
type File struct {
	// Name is the file's among all spools, Path where it is.
	Name, Path string
	// Size is how far its frames are whole.
	Size int64
}

// Open makes the spool of this process in a directory, which is made where there is none. There is no file before the
// first Append.
func Open(dir string, o Options) (*Spool, error) {
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = defaultMaxWaiting
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Spool{dir: dir, name: ulid.Make().String(), o: o, sums: crc32.MakeTable(crc32.Castagnoli)}
	s.lock = flock.New(s.path(lockEnding), flock.SetPermissions(0o600))
	locked, err := s.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another process has it")
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", s.lock.Path(), errors.Join(err, s.lock.Close()))
	}
	return s, nil
}

func (s *Spool) path(end string) string { return filepath.Join(s.dir, s.name+end) }

// Append writes a frame, whose first Header bytes it fills in. After an error nothing of it is kept.
func (s *Spool) Append(frame []byte) error {
	carried := frame[FrameHeader:]
	binary.BigEndian.PutUint32(frame, uint32(len(carried)))
	binary.BigEndian.PutUint32(frame[4:], crc32.Checksum(carried, s.sums))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case len(carried) == 0, len(carried) > MaxFrame:
		return fmt.Errorf("a record of %d bytes is no record", len(carried))
	case s.waiting+int64(len(frame)) > s.o.MaxWaiting:
		return ErrFull
	}
	if s.current == nil {
		if err := s.beginFile(); err != nil {
			return err
		}
	}
	err := s.current.write(s.currentFile.Size, frame)
	if err == nil && s.o.Sync {
		err = s.current.file.Sync()
	}
	if err != nil {
		if s.current.truncate(s.currentFile.Size) != nil {
			s.endFile() // what was written of the frame stays behind the last whole one, and nothing comes after it
		}
		return err
	}
	s.currentFile.Size += int64(len(frame))
	s.waiting += int64(len(frame))
	if s.currentFile.Size >= maxFileSize {
		s.endFile()
	}
	return nil
}

// beginFile begins a file. The lock is held.
func (s *Spool) beginFile() error {
	s.fileCount++
	name := fmt.Sprintf("%s-%d%s", s.name, s.fileCount, ending)
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	s.current = &mappedFile{file: f, unmapped: s.o.Sync}
	s.currentFile, s.prefaultedAt = File{Name: name, Path: path}, 0
	return nil
}

// endFile ends the file that is written. The lock is held.
func (s *Spool) endFile() {
	if s.current == nil {
		return
	}
	s.current.close(s.currentFile.Size)
	s.endedFiles = append(s.endedFiles, s.currentFile)
	s.current, s.currentFile = nil, File{}
}

// PendingFiles gives the files whose frames the store may not have yet, oldest first.
func (s *Spool) PendingFiles() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.endedFiles)
	if s.current != nil {
		all = append(all, s.currentFile)
	}
	return all
}

// Prefault has as much be written without delay as was written since it was last called, and a little more. Who calls
// it has time, which who calls Append has not.
func (s *Spool) Prefault() {
	const little, most = 4 << 10, 64 << 10
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.prefault(s.currentFile.Size, min(s.currentFile.Size-s.prefaultedAt+little, most))
		s.prefaultedAt = s.currentFile.Size
	}
}

// MarkStored says that the store has so many more bytes of frames.
func (s *Spool) MarkStored(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting -= n
}

// Remove removes a file of which the store has everything up to its Size, and says whether it did: one that is still
// written stays, and so do one that has grown since Files gave it and one that the directory does not let go.
func (s *Spool) Remove(f File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.endedFiles, f)
	if i < 0 {
		return false
	}
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	s.endedFiles = slices.Delete(s.endedFiles, i, i+1)
	return true
}

// SetAside gives up a file that has ended and has not what was written into it: it stays under another name, for a
// person to look at.
func (s *Spool) SetAside(f File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.endedFiles, f); i >= 0 {
		s.endedFiles = slices.Delete(s.endedFiles, i, i+1)
		_ = os.Rename(f.Path, f.Path+TornSuffix) // it may not be there at all
	}
}

// EndFile ends the file that is written, so that it can be removed; the next Append begins another. With last set
// there is none.
func (s *Spool) EndFile(last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || last
	s.endFile()
}

// Close gives the files up. Those that are left are for whoever comes next.
func (s *Spool) Close() error {
	s.EndFile(true)
	if len(s.PendingFiles()) == 0 {
		_ = os.Remove(s.lock.Path())
	}
	return s.lock.Close()
}

// RecoverOrphans hands over the files of processes that are gone, oldest first, and removes those that take gives no
// error for; one that is torn stays under another name. Torn is how many bytes after the last whole frame there were,
// but for the zeros at the end. Gone is told of each file that was removed: one that the directory does not let go is
// handed over again. The error is the first one; the other files are tried all the same.
func RecoverOrphans(dir string, take func(f File, torn int64) error, gone func(f File)) error {
	names, err := spoolFiles(dir)
	if err != nil || len(names) == 0 {
		return err
	}
	var first error
	for len(names) > 0 {
		process, _, _ := strings.Cut(names[0], "-")
		n := 0
		for n < len(names) && strings.HasPrefix(names[n], process+"-") {
			n++
		}
		if err := recoverProcess(dir, process, names[:n], take, gone); err != nil && first == nil {
			first = err
		}
		names = names[n:]
	}
	return first
}

// spoolFiles names the files of a directory, those of one process together in their order; none where there is no
// directory.
func spoolFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries { // a pipe or a link is no file of ours
		if name := e.Name(); e.Type().IsRegular() && strings.HasSuffix(name, ending) && strings.Contains(name, "-") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		ap, an, _ := strings.Cut(a, "-")
		bp, bn, _ := strings.Cut(b, "-")
		if c := strings.Compare(ap, bp); c != 0 {
			return c
		}
		if len(an) != len(bn) { // 9 before 10
			return len(an) - len(bn)
		}
		return strings.Compare(an, bn)
	})
	return names, err
}

// recoverProcess takes the files of one process, if nobody holds its lock.
func recoverProcess(dir, process string, names []string, take func(f File, torn int64) error, gone func(f File)) error {
	lock := flock.New(filepath.Join(dir, process+lockEnding), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil || !locked {
		return errors.Join(err, lock.Close())
	}
	defer lock.Close()
	for _, name := range names {
		f := File{Name: name, Path: filepath.Join(dir, name)}
		torn, err := f.measureWhole()
		if errors.Is(err, fs.ErrNotExist) { // somebody was faster
			continue
		}
		if err == nil {
			err = take(f, torn)
		}
		switch {
		case err != nil:
			return err
		case torn > 0:
			err = os.Rename(f.Path, f.Path+TornSuffix)
		default:
			err = os.Remove(f.Path)
		}
		if err != nil {
			return err
		}
		gone(f)
	}
	_ = os.Remove(lock.Path()) // before it is given up: who waits for it finds nothing to take
	return nil
}

// measureWhole finds out how far the frames of a file are whole, and how much comes after them that is not room for
// more.
func (f *File) measureWhole() (torn int64, err error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return 0, err
	}
	whole := File{Name: f.Name, Path: f.Path, Size: info.Size()}
	for {
		_, next, err := whole.Frames(f.Size)
		if err != nil {
			return 0, err
		}
		if next == f.Size {
			return f.tornBytes(info.Size())
		}
		f.Size = next
	}
}

// tornBytes gives how far behind the whole frames the last byte of the file is that is not zero.
func (f *File) tornBytes(size int64) (torn int64, err error) {
	r, err := os.Open(f.Path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	buf := make([]byte, min(readChunk, size-f.Size))
	for at := f.Size; at < size; {
		n, err := r.ReadAt(buf, at)
		if i := len(bytes.TrimRight(buf[:n], "\x00")); i > 0 {
			torn = at + int64(i) - f.Size
		}
		if at += int64(n); err == io.EOF {
			break
		} else if err != nil {
			return 0, err
		}
	}
	return torn, nil
}

// Frames reads what the frames carry that begin at from, as many as are read in one go, and says where the next one
// begins: at from, where there is no whole one.
func (f File) Frames(from int64) (carried [][]byte, next int64, err error) {
	r, err := os.Open(f.Path)
	if err != nil {
		return nil, from, err
	}
	defer r.Close()
	buf := make([]byte, min(readChunk, max(0, f.Size-from)))
	for next = from; ; {
		n, err := r.ReadAt(buf, next)
		if err != nil && err != io.EOF {
			return nil, from, err
		}
		at := 0
		for {
			frame, size := parseFrame(buf[at:n])
			if frame == nil {
				// it is larger than what was read
				if size > len(buf) && next+int64(size) <= f.Size && len(carried) == 0 {
					buf = make([]byte, size)
					break
				}
				return carried, next, nil
			}
			carried = append(carried, frame)
			at += size
			next += int64(size)
		}
	}
}

// parseFrame gives what the first frame of b carries, and how long the frame is; nothing where it is not whole.
func parseFrame(b []byte) (carried []byte, size int) {
	if len(b) < FrameHeader {
		return nil, 0
	}
	n := binary.BigEndian.Uint32(b)
	if n == 0 || n > MaxFrame {
		return nil, 0
	}
	size = FrameHeader + int(n)
	if size > len(b) || crc32.Checksum(b[FrameHeader:size],
		crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(b[4:]) {
		return nil, size
	}
	return b[FrameHeader:size:size], size
}
