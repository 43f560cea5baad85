package undo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

const (
	readsName = "reads.jsonl"
	// maxReadsBytes is the size in bytes at which the older half of the file with sources is removed.
	maxReadsBytes = 32 << 20
	// sourcesPerLine is the number of sources in one line; a line must be shorter than maxLine.
	sourcesPerLine = 50
	// maxSourceName is the number of bytes of a source's name that are stored.
	maxSourceName = 2000
)

// A readsLine is a line of the file with the sources that runs had read before they changed files. A source stands in
// it once for a run.
type readsLine struct {
	Time    time.Time     `json:"time"`
	Thread  string        `json:"thread,omitempty"`
	Run     string        `json:"run"`
	Sources []deck.Source `json:"sources"`
}

// appendReads appends the sources that a run has read since its last change. The caller must hold the lock. The file is
// not synced: after a crash of the system, the last changes may have no sources.
func (l *Log) appendReads(c Change, at time.Time) error {
	if len(c.Sources) == 0 || c.RunName == "" {
		return nil
	}
	var text bytes.Buffer
	for rest := c.Sources; len(rest) > 0; {
		n := min(len(rest), sourcesPerLine)
		line := readsLine{at, c.Thread, c.RunName, make([]deck.Source, n)}
		for i, s := range rest[:n] {
			if len(s.Name) > maxSourceName {
				s.Name = s.Name[:maxSourceName]
			}
			line.Sources[i] = s
		}
		encoded, err := json.Marshal(line)
		if err != nil {
			return err
		}
		text.Write(append(encoded, '\n'))
		rest = rest[n:]
	}
	path := filepath.Join(l.dir, readsName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text.Bytes())
	info, statErr := f.Stat()
	if err := errors.Join(err, statErr, f.Close()); err != nil || info.Size() <= maxReadsBytes {
		return err
	}
	return l.halveReads(path)
}

// halveReads removes the older half of the file with sources.
func (l *Log) halveReads(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	half := data[len(data)/2:]
	return configfile.ReplaceFile(path, half[bytes.IndexByte(half, '\n')+1:], 0o600)
}

// Sources returns what a run had read before a time, as far as the run has changed files since. thread and run are
// those of its changes.
func (l *Log) Sources(thread, run string, until time.Time) (all []deck.Source, err error) {
	err = l.eachReads(func(line readsLine) {
		if line.Thread == thread && line.Run == run && !line.Time.After(until) {
			all = append(all, line.Sources...)
		}
	})
	return all, err
}

// CallSources returns the sources that calls have read, by the IDs of the calls.
func (l *Log) CallSources(calls map[string]bool) (all []deck.Source, err error) {
	err = l.eachReads(func(line readsLine) {
		for _, s := range line.Sources {
			if s.Call != "" && calls[s.Call] {
				all = append(all, s)
			}
		}
	})
	return all, err
}

// eachReads calls each with the lines of the file with sources. It skips lines that are not valid, such as a line that
// a crash cut off.
func (l *Log) eachReads(each func(readsLine)) error {
	f, err := os.Open(filepath.Join(l.dir, readsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line readsLine
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			each(line)
		}
	}
	return lines.Err()
}
