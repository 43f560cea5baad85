// Package recordlog stores records in append-only files until they are stored in the central store. The files, called
// spool files, are in one directory. Each file is written by one process.
//
// When [Log.Append] returns, the record survives the end of the process, because the operating system has it. With
// Options.Sync it also survives a power failure. Each process locks a lock file in the same directory while it runs.
// When the lock is free, a later process imports the remaining files with [RecoverOrphans]. The package does not
// interpret the content of records.
//
// A file is a sequence of frames. A frame is the length of the content, the CRC-32C of the content (four bytes each,
// most significant byte first), and the content. Zeros after the last frame are preallocated space. A frame whose length
// has the highest bit set is an open frame, see openframe.go: its content can be completed later in the same place.
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
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
)

// FrameHeader is the length in bytes of a frame's header, before its content.
const FrameHeader = 8

const (
	// defaultMaxWaiting is the default value of Options.MaxWaiting.
	defaultMaxWaiting = 256 << 20
	// maxFileSize is the size from which a file is closed, see appendFrame; the next record is written to a new file.
	maxFileSize = 4 << 20
	// MaxFrame is the maximum length of a frame's content. A greater length in a file means that the file is
	// damaged.
	MaxFrame = 16 << 20
	// readChunk is the number of bytes that one read of a file requests.
	readChunk = 1 << 20

	ending     = ".spool"
	lockEnding = ".lock"
	// TornSuffix is appended to the name of a file that did not end with a complete frame. The file is not removed,
	// so that a person can examine it.
	TornSuffix = ".torn"
)

// ErrFull is returned by [Log.Append] if too many bytes in the directory are not in the store yet.
var ErrFull = errors.New("too many bytes wait for the store")

// errClosed is returned by [Log.Append] after the log was closed.
var errClosed = errors.New("the spool is closed")

// Options are the options of a log. The zero value is valid.
type Options struct {
	// Sync makes each Append wait until the record is on the disk.
	Sync bool
	// MaxWaiting is the maximum number of bytes in the directory that are not in the store yet; 0 means
	// defaultMaxWaiting.
	MaxWaiting int64
}

// A Log writes the files of one process. Its methods are safe for concurrent use.
type Log struct {
	dir, name string
	o         Options
	lock      *flock.Flock
	sums      *crc32.Table

	// mu guards the fields below. current is the file to which frames are appended; it is nil before the first frame
	// of a new file. endedFiles are the earlier files, whose frames may not be in the store yet.
	mu          sync.Mutex
	current     *mappedFile
	currentFile File
	endedFiles  []File
	fileCount   int
	waiting     int64
	others      int64 // the total size of other processes' files in the directory, as CountOthers last counted it
	closed      bool
	// taken is the size of the current file at the last call of PendingFiles. Frames before it may have been read, so
	// they are not completed in place.
	taken int64
	// incomplete are the open frames of the current file that are not completed, in the order of their positions.
	incomplete []openPlace
	// prefaultedAt is the size of the current file at the last call of Prefault.
	prefaultedAt int64
}

// A File describes one spool file.
type File struct {
	// Name is the file's unique name among all spool files, and Path its location.
	Name, Path string
	// Size is the length of the complete frames.
	Size int64
}

// Open returns a log in a directory, which it creates if it does not exist. The first Append creates the first file.
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

// CountOthers counts the total size of other processes' files in the directory. Options.MaxWaiting limits the sum of
// this size and the size of this log's files.
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

// CountOrphans returns the number of files of dead processes in a directory, and the total length of their complete
// frames. It does not count files without a complete frame.
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

// Append writes a frame to the current file. The first FrameHeader bytes of frame are reserved for the header, which
// Append fills in; the other bytes are the content. If Append returns an error, the frame is not stored.
func (s *Log) Append(frame []byte) error {
	carried := frame[FrameHeader:]
	binary.BigEndian.PutUint32(frame, uint32(len(carried)))
	binary.BigEndian.PutUint32(frame[4:], crc32.Checksum(carried, s.sums))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appendFrame(frame)
}

// appendFrame writes a frame whose header is set. The caller must hold s.mu.
func (s *Log) appendFrame(frame []byte) error {
	switch n := len(frame) - FrameHeader; {
	case s.closed:
		return errClosed
	case n == 0, n > MaxFrame:
		return fmt.Errorf("a record of %d bytes is too large or empty", n)
	case s.waiting+s.others+int64(len(frame)) > s.o.MaxWaiting:
		return ErrFull
	}
	// A full file ends with the next frame, and later while frames of it are open: they are completed in place meanwhile.
	if size := s.currentFile.Size; size >= maxFileSize && (len(s.incomplete) == 0 || size >= 2*maxFileSize) {
		s.endFile()
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
			s.endFile() // an incomplete frame remains at the end, so no frame may follow it
		}
		return err
	}
	s.currentFile.Size += int64(len(frame))
	s.waiting += int64(len(frame))
	return nil
}

// beginFile creates the next file. The caller must hold s.mu.
func (s *Log) beginFile() error {
	s.fileCount++
	name := fmt.Sprintf("%s-%d%s", s.name, s.fileCount, ending)
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	s.current = &mappedFile{file: f, unmapped: s.o.Sync}
	s.currentFile, s.prefaultedAt, s.taken, s.incomplete = File{Name: name, Path: path}, 0, 0, s.incomplete[:0]
	return nil
}

// endFile closes the current file. The caller must hold s.mu.
func (s *Log) endFile() {
	if s.current == nil {
		return
	}
	s.current.close(s.currentFile.Size)
	s.endedFiles = append(s.endedFiles, s.currentFile)
	s.current, s.currentFile = nil, File{}
}

// PendingFiles returns the files whose frames the store may not have yet, oldest first. Frames that are in these files now
// are no longer completed in place.
func (s *Log) PendingFiles() []File {
	all, _ := s.PendingFilesBefore(time.Time{})
	return all
}

// PendingFilesBefore is like PendingFiles, but leaves out the open frames that were appended after a time and are not
// completed, and the frames after them. more reports whether frames were left out. The zero time leaves out none.
func (s *Log) PendingFilesBefore(t time.Time) (all []File, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = slices.Clone(s.endedFiles)
	if s.current == nil {
		return all, false
	}
	f := s.currentFile
	if !t.IsZero() {
		for _, p := range s.incomplete {
			if p.since.After(t) && p.at >= s.taken {
				f.Size, more = p.at, true
				break
			}
		}
	}
	s.taken = max(s.taken, f.Size)
	return append(all, f), more
}

// Prefault makes the next part of the mapped file writable, so that Append does not wait for page faults. The size of
// that part is the number of bytes written since the previous Prefault plus 4 KiB, and at most 64 KiB.
func (s *Log) Prefault() {
	const little, most = 4 << 10, 64 << 10
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.prefault(s.currentFile.Size, min(s.currentFile.Size-s.prefaultedAt+little, most))
		s.prefaultedAt = s.currentFile.Size
	}
}

// MarkStored is called after n further bytes of frames were stored in the central store. It subtracts n from the
// number of waiting bytes, which Options.MaxWaiting limits.
func (s *Log) MarkStored(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting -= n
}

// Remove removes a file whose frames up to f.Size are in the store, and reports whether it removed the file. It does
// not remove a file to which frames may still be appended, or that has grown since PendingFiles returned f. It also
// returns false if the operating system cannot remove the file.
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

// SetAside renames an ended file whose content is not what the log wrote, so that a person can examine it.
func (s *Log) SetAside(f File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.endedFiles, f); i >= 0 {
		s.endedFiles = slices.Delete(s.endedFiles, i, i+1)
		_ = os.Rename(f.Path, f.Path+TornSuffix) // the file may not exist
	}
}

// EndFile closes the current file; only a closed file can be removed. The next Append begins another file. If last is
// true, the log accepts no more records.
func (s *Log) EndFile(last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || last
	s.endFile()
}

// Close closes the log. If files remain, a later process imports them with RecoverOrphans.
func (s *Log) Close() error {
	s.EndFile(true)
	if len(s.PendingFiles()) == 0 {
		_ = os.Remove(s.lock.Path())
	}
	return s.lock.Close()
}

// RecoverOrphans calls take for each file of a dead process, oldest first, and then removes the file. torn is the
// number of bytes of an incomplete frame at the end of the file; preallocated zeros are not counted. If torn is not
// 0, the file is renamed instead of removed. RecoverOrphans calls gone for each removed or renamed file.
//
// If take returns an error, the file and the later files of the same process remain. The files of other processes are
// still processed. RecoverOrphans returns the first error; a later call tries the remaining files again.
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

// spoolFiles returns the names of the spool files in a directory, grouped by process, and sorted by age for each
// process. If the directory does not exist, spoolFiles returns no names.
func spoolFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries { // ignore pipes and links
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
		if len(an) != len(bn) { // a shorter number is smaller: 9 before 10
			return len(an) - len(bn)
		}
		return strings.Compare(an, bn)
	})
	return names, err
}

// recoverProcess does the work of RecoverOrphans for the files of one process. If the lock of that process is in use,
// the process is running, and recoverProcess does nothing.
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
		if errors.Is(err, fs.ErrNotExist) { // another process has recovered the file
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
	_ = os.Remove(lock.Path()) // before it is unlocked: a process that waits for it finds no files
	return nil
}

// measureWhole sets Size to the length of the complete frames. It returns the number of torn bytes: the bytes after
// the last complete frame, without zeros at the end.
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

// tornBytes returns the number of bytes between the end of the last complete frame and the last byte that is not
// zero.
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

// Frames returns the contents of complete frames, starting with the frame at the position from. It returns as many as
// one read of the file contains, and the position after them. If no complete frame begins at from, next equals from.
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

// parseFrame returns the content of the frame at the beginning of b, and the length of the whole frame. If the frame
// is incomplete or damaged, the content is nil.
func parseFrame(b []byte) (carried []byte, size int) {
	if len(b) < FrameHeader {
		return nil, 0
	}
	n := binary.BigEndian.Uint32(b)
	open := n&openFlag != 0
	n &^= openFlag
	if n == 0 || n > MaxFrame || open && n <= roomSize {
		return nil, 0
	}
	size = FrameHeader + int(n)
	if open && size <= len(b) {
		return openContent(b[:size]), size
	}
	if size > len(b) || crc32.Checksum(b[FrameHeader:size],
		crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(b[4:]) {
		return nil, size
	}
	return b[FrameHeader:size:size], size
}
