package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

const (
	// historySuffix ends the name of a file with a history, and lockSuffix that of the lock beside it.
	historySuffix = ".jsonl"
	lockSuffix    = ".lock"
)

// ErrInUse is returned by [OpenHistory] if another process, or another FileHistory, writes the session.
var ErrInUse = errors.New("the session is in use")

// A FileHistory keeps the entries of one session in a file, one JSON object a line. Each entry is on the disk when
// Append returns. A lock beside the file keeps other processes from writing it.
type FileHistory struct {
	id, path string
	lock     *flock.Flock
	cut      int64

	// mu guards file, size and broken. broken is set when the end of the file is not known to be a whole line.
	mu     sync.Mutex
	file   *os.File
	size   int64
	broken error
}

var _ History = (*FileHistory)(nil)

// OpenHistory opens the history of a session in a directory, and creates both if they do not exist. Only the user can
// read them. A last line that was not written completely is cut off; see [FileHistory.Cut].
func OpenHistory(dir, session string) (*FileHistory, error) {
	path, err := historyPath(dir, session)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of sessions: %w", err)
	}
	h := &FileHistory{id: session, path: path,
		lock: flock.New(strings.TrimSuffix(path, historySuffix)+lockSuffix, flock.SetPermissions(0o600))}
	locked, err := h.lock.TryLock()
	if err == nil && !locked {
		err = ErrInUse
	}
	if err != nil {
		return nil, fmt.Errorf("lock the session %s: %w", session, errors.Join(err, h.lock.Close()))
	}
	if err := h.open(dir); err != nil {
		return nil, fmt.Errorf("open the session %s: %w", session, errors.Join(err, h.Close()))
	}
	return h, nil
}

// historyPath returns the path of a session's file.
func historyPath(dir, session string) (string, error) {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if session == "" || len(session) > 100 || strings.Trim(session, allowed) != "" {
		return "", errors.New("open the session: an ID has 1 to 100 letters, digits, \"-\" and \"_\"")
	}
	return filepath.Join(dir, session+historySuffix), nil
}

// open opens the file, makes it private, and cuts off what follows its last whole line.
func (h *FileHistory) open(dir string) error {
	file, err := os.OpenFile(h.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return err
	}
	h.file = file
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if info.Mode().Perm() != 0o600 {
		if err := file.Chmod(0o600); err != nil {
			return fmt.Errorf("keep other users out: %w", err)
		}
	}
	for e, err := range readEntries(file, func(end int64) { h.size = end }) {
		if err != nil {
			return err
		}
		if e.Version > historyVersion {
			return fmt.Errorf("it was written by a newer version of this program (format %d)", e.Version)
		}
	}
	if h.cut = info.Size() - h.size; h.cut > 0 {
		if err := file.Truncate(h.size); err != nil {
			return fmt.Errorf("cut off the incomplete last line: %w", err)
		}
	}
	return errors.Join(file.Sync(), syncDir(dir))
}

// ID returns the ID of the session.
func (h *FileHistory) ID() string { return h.id }

// Path returns the path of the file.
func (h *FileHistory) Path() string { return h.path }

// Cut returns the number of bytes that OpenHistory cut off the end of the file, because a write had not been completed.
func (h *FileHistory) Cut() int64 { return h.cut }

// Append writes an entry to the disk.
func (h *FileHistory) Append(_ context.Context, e Entry) error {
	line, err := encodeEntry(e)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken != nil {
		return h.broken
	}
	if _, err := h.file.Write(line); err != nil {
		if undo := h.file.Truncate(h.size); undo != nil {
			h.broken = fmt.Errorf("the file is damaged: %w", errors.Join(err, undo))
		}
		return err
	}
	// After an error of Sync, the system may have dropped what it did not write. What is on the disk is not known.
	if err := h.file.Sync(); err != nil {
		h.broken = fmt.Errorf("the file is damaged: %w", err)
		return err
	}
	h.size += int64(len(line))
	return nil
}

// encodeEntry returns an entry as one line.
func encodeEntry(e Entry) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, err
	}
	return line.Bytes(), nil
}

// Entries reads the entries from the file.
func (h *FileHistory) Entries(context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		h.mu.Lock()
		file, size := h.file, h.size
		h.mu.Unlock()
		if file == nil {
			yield(Entry{}, os.ErrClosed)
			return
		}
		for e, err := range readEntries(io.NewSectionReader(file, 0, size), nil) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// Close closes the file and unlocks it. It removes a file without entries.
func (h *FileHistory) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = errors.New("the history is closed")
	}
	var errs []error
	if h.file != nil {
		errs = append(errs, h.file.Close())
		if info, err := os.Lstat(h.path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			errs = append(errs, os.Remove(h.path))
		}
		h.file = nil
	}
	return errors.Join(append(errs, h.lock.Close())...)
}

// readEntries reads entries, one a line. A last line that is not a whole entry is left out; such a line before the last
// is an error. read, if it is not nil, is called with the position after each entry.
func readEntries(r io.Reader, read func(end int64)) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := bufio.NewReaderSize(r, 64<<10)
		var end int64
		var damaged error
		for number := 1; ; number++ {
			line, err := lines.ReadBytes('\n')
			if err != nil && err != io.EOF {
				yield(Entry{}, err)
				return
			}
			if len(line) == 0 || err == io.EOF {
				return // the last line has no end
			}
			var e Entry
			if bad := json.Unmarshal(line, &e); bad != nil || e.Kind == "" {
				damaged = fmt.Errorf("line %d is damaged: %w", number, errors.Join(bad, errors.New("it has no entry")))
				continue
			}
			if damaged != nil {
				yield(Entry{}, damaged)
				return
			}
			end += int64(len(line))
			if read != nil {
				read(end)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
