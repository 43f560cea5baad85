// Package recordlog keeps records that must not be lost until the store has them: append-only files in one directory,
// each written by one process.
//
// When [Log.Append] returns, the operating system has the record: the death of the process does not lose it, and with
// Options.Sync neither does a power failure. A later process finds the files of dead processes ([RecoverOrphans]): a
// file belongs to a process as long as that holds the lock beside it. The package does not look into the records.
//
// A file is a sequence of frames: the length of the content and its CRC-32C (four bytes each, most significant first),
// then the content. After the last frame there may be zeros, which are room for more.
package recordlog

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

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
)

// FrameHeader is the number of bytes of a frame before its content.
const FrameHeader = 8

const (
	// defaultMaxWaiting is the default of Options.MaxWaiting.
	defaultMaxWaiting = 256 << 20
	// maxFileSize is the size above which the next file is begun.
	maxFileSize = 4 << 20
	// MaxFrame bounds the content of one frame; a greater length is damage.
	MaxFrame = 16 << 20
	// readChunk is how much of a file is read in one go.
	readChunk = 1 << 20

	ending     = ".spool"
	lockEnding = ".lock"
	// TornSuffix is appended to the name of a file that did not end with a whole frame. It stays for a person to look
	// at.
	TornSuffix = ".torn"
)

// ErrFull reports that too many bytes wait for the store.
var ErrFull = errors.New("too many bytes wait for the store")

// errClosed reports that the spool is closed.
var errClosed = errors.New("the spool is closed")

// Options are options of a spool. The zero value works.
type Options struct {
	// Sync makes each Append wait for the disk.
	Sync bool
	// MaxWaiting is how many bytes may wait in the directory; 0 is defaultMaxWaiting.
	MaxWaiting int64
}

// A Log is the files of one process. Its methods may be called from several goroutines.
type Log struct {
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
	others      int64 // the bytes of other processes' files in the directory, when they were last counted
	closed      bool
	// prefaultedAt is where the file that is written ended when Prepare was last called.
	prefaultedAt int64
}

// A File describes one file.
type File struct {
	// Name is the file's among all spools, Path where it is.
	Name, Path string
	// Size is how far its frames are whole.
	Size int64
}

// Open opens the spool of this process in a directory, which it creates if it is missing. The first Append creates the
// file.
func Open(dir string, o Options) (*Log, error) {
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = defaultMaxWaiting
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := privatefile.Protect(dir, true); err != nil {
		return nil, err
	}
	s := &Log{dir: dir, name: ulid.Make().String(), o: o, sums: crc32.MakeTable(crc32.Castagnoli)}
	s.lock = flock.New(s.path(lockEnding), flock.SetPermissions(0o600))
	locked, err := s.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another process has it")
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", s.lock.Path(), errors.Join(err, s.lock.Close()))
	}
	if err := s.CountOthers(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// CountOthers counts the bytes of the files of other processes in the directory, which count as waiting.
func (s *Log) CountOthers() error {
	names, err := spoolFiles(s.dir)
	if err != nil {
		return err
	}
	var bytes int64
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil && !strings.HasPrefix(name, s.name+"-") {
			bytes += info.Size()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = bytes
	return nil
}

// CountOrphans returns how many files of dead processes a directory has, and their bytes up to the last whole frame.
func CountOrphans(dir string) (files int, bytes int64, err error) {
	names, err := spoolFiles(dir)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		process, _, _ := strings.Cut(name, "-")
		path := filepath.Join(dir, process+lockEnding)
		if _, err := os.Stat(path); err == nil {
			lock := flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_RDONLY))
			free, err := lock.TryRLock()
			if err := errors.Join(err, lock.Close()); err != nil || !free {
				continue
			}
		}
		f := File{Name: name, Path: filepath.Join(dir, name)}
		if _, err := f.measureWhole(); err == nil && f.Size > 0 {
			files, bytes = files+1, bytes+f.Size
		}
	}
	return files, bytes, nil
}

func (s *Log) path(end string) string { return filepath.Join(s.dir, s.name+end) }

// Append writes a frame, whose first FrameHeader bytes it fills in. After an error nothing of it is kept.
func (s *Log) Append(frame []byte) error {
	carried := frame[FrameHeader:]
	binary.BigEndian.PutUint32(frame, uint32(len(carried)))
	binary.BigEndian.PutUint32(frame[4:], crc32.Checksum(carried, s.sums))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case len(carried) == 0, len(carried) > MaxFrame:
		return fmt.Errorf("a record of %d bytes is too large or empty", len(carried))
	case s.waiting+s.others+int64(len(frame)) > s.o.MaxWaiting:
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
			s.endFile() // a partial frame stays at the end, and nothing follows it
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
func (s *Log) beginFile() error {
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
func (s *Log) endFile() {
	if s.current == nil {
		return
	}
	s.current.close(s.currentFile.Size)
	s.endedFiles = append(s.endedFiles, s.currentFile)
	s.current, s.currentFile = nil, File{}
}

// PendingFiles returns the files with frames that the store may not have yet, oldest first.
func (s *Log) PendingFiles() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.endedFiles)
	if s.current != nil {
		all = append(all, s.currentFile)
	}
	return all
}

// Prefault prepares memory for as many bytes as were written since its last call, and some more, so that Append does
// not have to wait for it.
func (s *Log) Prefault() {
	const little, most = 4 << 10, 64 << 10
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.prefault(s.currentFile.Size, min(s.currentFile.Size-s.prefaultedAt+little, most))
		s.prefaultedAt = s.currentFile.Size
	}
}

// MarkStored records that the store has n more bytes of frames.
func (s *Log) MarkStored(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting -= n
}

// Remove removes a file if the store has everything up to its Size, and reports whether it did. A file stays if it is
// still written, has grown since PendingFiles returned it, or cannot be removed.
func (s *Log) Remove(f File) bool {
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

// SetAside renames a finished file that does not hold what was written to it, for a person to look at.
func (s *Log) SetAside(f File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.endedFiles, f); i >= 0 {
		s.endedFiles = slices.Delete(s.endedFiles, i, i+1)
		_ = os.Rename(f.Path, f.Path+TornSuffix) // it may not be there at all
	}
}

// EndFile ends the current file, so that it can be removed. The next Append begins another, unless last is set: then
// the log accepts no more records.
func (s *Log) EndFile(last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || last
	s.endFile()
}

// Close closes the files. The next process recovers those that are left.
func (s *Log) Close() error {
	s.EndFile(true)
	if len(s.PendingFiles()) == 0 {
		_ = os.Remove(s.lock.Path())
	}
	return s.lock.Close()
}

// RecoverOrphans calls take with the files of dead processes, oldest first, and removes those without an error; a torn
// file is renamed and kept. torn is the number of bytes after the last whole frame, without the zeros at the end. gone
// is called for each removed file; a file that cannot be removed is taken again. The error is the first one; the other
// files are tried all the same.
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

// spoolFiles returns the names of a directory's files, grouped by process and in order; none if the directory is
// missing.
func spoolFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries { // a pipe or a link is not a spool file
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

// recoverProcess takes the files of one process, if its lock is free.
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
		if errors.Is(err, fs.ErrNotExist) { // another process was faster
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

// tornBytes returns the number of bytes from the last whole frame to the last byte that is not zero.
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

// Frames returns the contents of the frames from a position on, as many as one read yields, and the position of the
// next frame. Without a whole frame, that is the given position.
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
				// the frame is larger than the buffer
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

// parseFrame returns the content of the first frame of b and the frame's length; zero values if it is incomplete.
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
