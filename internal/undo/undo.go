// Package undo stores the contents that files had before tools changed them, so that a person can undo the changes of a
// run. A run is a sequence of calls of one client; see deck.RunOf. Each content is stored in a file whose name is the
// hash of the content. A log in the same directory lists the changes. Several processes may use the same directory.
package undo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

const (
	// DefaultMaxBytes is the default limit for the total size of the stored contents, in bytes. If it would be
	// exceeded, the oldest changes are removed from the log.
	DefaultMaxBytes = 256 << 20
	// maxContent is the size in bytes of the largest file whose content is stored. Before returns an error for a larger
	// file.
	maxContent = 64 << 20
	// pruneInterval is how many small contents are stored, on average, between two checks of the size limit. Before a
	// large content is stored, the limit is always checked.
	pruneInterval = 64
	// maxLine is the size in bytes of the longest log line that can be read.
	maxLine = 1 << 20

	logName, lockName, contentsName = "log.jsonl", "lock", "contents"
)

// A Change describes a change that a tool is about to make to a file.
type Change struct {
	// Run is the key of the run that makes the change, such as the result of deck.RunOf.
	Run string
	// Tool is the name of the tool. Path is the absolute path of the file.
	Tool, Path string
	// Caller and Client are the principal and the client of the call that makes the change, and Dir is the caller's
	// working directory. People see them in the list of runs.
	Caller, Client, Dir string
	// Call is the ID of the audit record of the call, Kind the kind of the caller, and Thread and RunName its thread
	// and run in other records; see deck.ThreadAndRun. Sources are what the run has read since its last change.
	Call, Kind, Thread, RunName string
	Sources                     []deck.Source
}

// ID returns a short ID for the run with this key. People see the ID and use it to select the run.
func ID(run string) string {
	sum := sha256.Sum256([]byte(run))
	return hex.EncodeToString(sum[:4])
}

// An entry is a line of the log. Each change has two entries with the same Change: the first is written before the
// change, the second after it.
type entry struct {
	Time time.Time `json:"time"`
	// Change is a unique ID of the change.
	Change string `json:"change"`
	Run    string `json:"run"`
	Tool   string `json:"tool,omitempty"`
	Path   string `json:"path"`
	Caller string `json:"caller,omitempty"`
	Client string `json:"client,omitempty"`
	Dir    string `json:"dir,omitempty"`
	// Before and After are the hashes of the content of the file before and after the change; the constant absent means
	// that the file does not exist. After is empty in the first entry of a change.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`
	// Lines are the numbers of the first and the last changed line of the new content.
	Lines [2]int `json:"lines,omitzero"`
	// Call, Kind, Thread and RunName are those of the Change. Hunks are the changed lines: the first line of the new
	// content, and how many lines were removed and written. Count is the number of lines of the new content. Earlier
	// releases did not store them.
	Call    string   `json:"call,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Thread  string   `json:"thread,omitempty"`
	RunName string   `json:"name,omitempty"`
	Hunks   [][3]int `json:"hunks,omitempty"`
	Count   int      `json:"count,omitempty"`
}

// absent is used instead of the hash of a content for a file that does not exist.
const absent = "absent"

// A Log stores changes of files, and the contents before the changes, in a directory.
type Log struct {
	dir      string
	maxBytes int64
}

// Open returns the log in the directory dir, which is created with the first change. maxBytes limits the total size of
// the stored contents; 0 means DefaultMaxBytes.
func Open(dir string, maxBytes int64) *Log {
	if maxBytes == 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Log{dir, maxBytes}
}

// Before stores the content of the file c.Path; a tool must call it before it changes the file. After the change, the
// tool must call done with the content that it wrote, or with nil if it deleted the file. If Before returns an error,
// the tool must not change the file, because the change could not be undone.
func (l *Log) Before(c Change) (done func(after []byte) error, err error) {
	content, mode, err := readFile(c.Path)
	if err != nil {
		return nil, err
	}
	hash := absent
	if content != nil {
		if hash, err = l.keep(content); err != nil {
			return nil, err
		}
	}
	now := time.Now().UTC()
	e := entry{Time: now, Change: changeID(c, now), Run: ID(c.Run), Tool: c.Tool, Path: c.Path, Caller: c.Caller,
		Client: c.Client, Dir: c.Dir, Before: hash, Mode: uint32(mode), Call: c.Call, Kind: c.Kind, Thread: c.Thread, RunName: c.RunName}
	if err := l.append(e, func() error { return l.appendReads(c, now) }); err != nil {
		return nil, err
	}
	return func(after []byte) error {
		e.After = absent
		if after != nil {
			e.After, e.Lines = hashOf(after), changedLines(content, after)
			e.setHunks(content, after)
		}
		return l.append(e, nil)
	}, nil
}

// changeID returns a unique ID for a change.
func changeID(c Change, now time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s %s", os.Getpid(), now.UnixNano(), c.Run, c.Path))
	return hex.EncodeToString(sum[:8])
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// readFile returns the content and the mode of a regular file. The content is nil if the file does not exist. It
// returns an error for any other kind of file, and for a file of more than maxContent bytes.
func readFile(path string) (content []byte, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, &fs.PathError{Op: "keep", Path: path, Err: errors.New("it is not a regular file")}
	case info.Size() > maxContent:
		return nil, 0, &fs.PathError{Op: "keep", Path: path, Err: fmt.Errorf("it is larger than %d bytes", maxContent)}
	}
	if content, err = os.ReadFile(path); content == nil && err == nil {
		content = []byte{}
	}
	return content, info.Mode().Perm(), err
}

// keep stores a content in a file that is named by its hash, unless it is already stored. Before that, it removes old
// changes if the size limit would be exceeded.
func (l *Log) keep(content []byte) (hash string, err error) {
	hash = hashOf(content)
	path := l.contentPath(hash)
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(content)) {
		return hash, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// The size limit is not checked each time, because the check reads the whole log.
	if size := int64(len(content)); size > l.maxBytes/pruneInterval || rand.IntN(pruneInterval) == 0 {
		if err := l.prune(size); err != nil {
			return "", err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return hash, nil
}

func (l *Log) contentPath(hash string) string {
	return filepath.Join(l.dir, contentsName, hash[:2], hash)
}

// append appends an entry to the log, after it has called before if that is not nil. Meanwhile it holds the lock of the
// log, so that no other process changes the log.
func (l *Log) append(e entry, before func() error) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return l.locked(func() error {
		if before != nil {
			if err := before(); err != nil {
				return err
			}
		}
		f, err := os.OpenFile(filepath.Join(l.dir, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(append(text, '\n'))
		return errors.Join(err, f.Sync(), f.Close())
	})
}

// locked calls do while it holds the lock of the log, so that no other process changes the log.
func (l *Log) locked(do func() error) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(l.dir, lockName), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	return errors.Join(do(), lock.Close())
}

// entries returns one entry for each change, in the order in which the changes began. It is the second entry of the
// change if there is one. Lines that are not valid entries, such as a line that a crash cut off, are skipped.
func (l *Log) entries() (all []entry, err error) {
	f, err := os.Open(filepath.Join(l.dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Change == "" {
			continue
		}
		if i, ok := at[e.Change]; ok {
			all[i] = e
			continue
		}
		at[e.Change] = len(all)
		all = append(all, e)
	}
	return all, lines.Err()
}

// prune removes the oldest changes and their contents, if the stored contents and a new content of more bytes together
// exceed the size limit. It removes so many that nine tenths of the limit are not exceeded. So it need not remove
// changes again for the next content.
func (l *Log) prune(more int64) error {
	return l.locked(func() error {
		all, err := l.entries()
		if err != nil {
			return err
		}
		sizes, total := map[string]int64{}, more
		for _, e := range all {
			if _, counted := sizes[e.Before]; counted || e.Before == absent {
				continue
			}
			if info, err := os.Stat(l.contentPath(e.Before)); err == nil {
				sizes[e.Before] = info.Size()
				total += info.Size()
			}
		}
		if total <= l.maxBytes {
			return nil
		}
		var kept []entry
		for i, e := range all {
			if total <= l.maxBytes*9/10 {
				kept = all[i:]
				break
			}
			if size, ok := sizes[e.Before]; ok && !slices.ContainsFunc(all[i+1:], func(o entry) bool { return o.Before == e.Before }) {
				if err := os.Remove(l.contentPath(e.Before)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				total -= size
			}
		}
		return l.rewrite(kept)
	})
}

// rewrite replaces all lines of the log with these entries.
func (l *Log) rewrite(all []entry) error {
	var text bytes.Buffer
	for _, e := range all {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	return configfile.ReplaceFile(filepath.Join(l.dir, logName), text.Bytes(), 0o600)
}

// changedLines returns the numbers of the first and the last line in after that differ from before, counted from 1.
func changedLines(before, after []byte) [2]int {
	old, fresh := bytes.SplitAfter(before, []byte{'\n'}), bytes.SplitAfter(after, []byte{'\n'})
	first := 0
	for first < len(old) && first < len(fresh) && bytes.Equal(old[first], fresh[first]) {
		first++
	}
	last := len(fresh)
	for i := len(old); last > first && i > first && bytes.Equal(old[i-1], fresh[last-1]); i-- {
		last--
	}
	return [2]int{first + 1, max(last, first+1)}
}

// Erase removes the stored contents that contain one of the texts. The changes of these files can no longer be undone.
func (l *Log) Erase(texts []string) error {
	return l.locked(func() error {
		all, err := l.entries()
		if err != nil {
			return err
		}
		var errs []error
		seen := map[string]bool{absent: true}
		for _, e := range all {
			if seen[e.Before] {
				continue
			}
			seen[e.Before] = true
			content, err := os.ReadFile(l.contentPath(e.Before))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil && slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(content, []byte(text)) }) {
				err = os.Remove(l.contentPath(e.Before))
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// content returns the stored content with this hash. It returns an error if the content is not stored, or if it is
// damaged, so that its hash differs.
func (l *Log) content(hash string) ([]byte, error) {
	f, err := os.Open(l.contentPath(hash))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err == nil && hashOf(content) != hash {
		err = errors.New("the kept content is damaged")
	}
	return content, err
}
