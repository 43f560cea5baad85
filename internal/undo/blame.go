package undo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A Written describes a change of a file that a tool has made.
type Written struct {
	Time time.Time `json:"time"`
	Tool string    `json:"tool"`
	Path string    `json:"path"`
	// Call is the ID of the audit record of the call; empty if it is not known. Thread and Run are those of the caller,
	// and Undo is the ID of the run for an undo.
	Call   string `json:"call,omitempty"`
	Thread string `json:"thread,omitempty"`
	Run    string `json:"run,omitempty"`
	Undo   string `json:"undo"`
	// Kind is the kind of the caller, Caller its principal, and Client its client.
	Kind   string `json:"kind,omitempty"`
	Caller string `json:"caller,omitempty"`
	Client string `json:"client,omitempty"`
	// Digest is the SHA-256 of the content that the change wrote; empty if the change deleted the file, or if it was
	// interrupted.
	Digest string `json:"digest,omitempty"`
}

func (e entry) written() *Written {
	w := &Written{Time: e.Time, Tool: e.Tool, Path: e.Path, Call: e.Call, Thread: e.Thread, Run: e.RunName, Undo: e.Run, Kind: e.Kind,
		Caller: e.Caller, Client: e.Client, Digest: e.After}
	if w.Digest == absent {
		w.Digest = ""
	}
	return w
}

// A Range is a range of lines that the same change wrote.
type Range struct {
	// First and Last are numbers of lines, counted from 1.
	First int `json:"first"`
	Last  int `json:"last"`
	// By is the change; nil if no change in the log wrote the lines. Then After is the change after which something
	// else changed the file; it is nil for lines that were there before the first change in the log.
	By    *Written `json:"by,omitempty"`
	After *Written `json:"changed_by_hand_after,omitempty"`
}

// A Blame says which changes wrote the lines of a file.
type Blame struct {
	Path string `json:"path"`
	// Digest is the SHA-256 of the file; empty if the file does not exist.
	Digest string `json:"digest,omitempty"`
	// Ranges are all lines of the file, in their order. They are empty if ChangedAfter is set.
	Ranges []Range `json:"ranges,omitempty"`
	// ChangedAfter is set if the file has not a content that a change in the log left: it was changed by hand, or by a
	// program that is not one of the tools, after this change.
	ChangedAfter *Written `json:"changed_by_hand_after,omitempty"`
	// Last is the last change.
	Last *Written `json:"last"`
}

// ErrNoChanges reports that no change of a file is stored.
var ErrNoChanges = errors.New("no tool of Drawbridge changed the file, or the record is not kept any more")

// Blame returns which changes wrote the lines of a file. path is absolute. The error is ErrNoChanges if no change of
// the file is stored.
//
// The changes are followed through the hashes of the contents: a change continues what is known of the content that it
// found. If that content is not one that an earlier change left, something else wrote it, and nothing is known of its
// lines. So lines are never assigned to a change that did not write them.
func (l *Log) Blame(path string) (Blame, error) {
	all, err := l.entries()
	if err != nil {
		return Blame{}, err
	}
	names := pathNames(path)
	var changes []entry
	for _, e := range all {
		if names[e.Path] {
			changes = append(changes, e)
		}
	}
	if len(changes) == 0 {
		return Blame{}, ErrNoChanges
	}
	b := Blame{Path: path, Last: changes[len(changes)-1].written()}
	content, _, err := readFile(path)
	if err != nil {
		return b, err
	}
	now := absent
	if content != nil {
		now, b.Digest = hashOf(content), hashOf(content)
	}
	spans, ok := statesOf(changes)[now]
	if !ok {
		b.ChangedAfter = b.Last
		return b, nil
	}
	if spans == nil && content != nil && len(content) > 0 { // its lines are not known
		spans = []span{{countLines(content), unknownOwner}}
	}
	b.setRanges(spans, changes)
	return b, nil
}

// pathNames returns the names under which the log may have a file: path, and path without links.
func pathNames(path string) map[string]bool {
	names := map[string]bool{filepath.Clean(path): true}
	if resolved, err := configfile.ResolveLinks(path); err == nil {
		names[resolved] = true
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		names[resolved] = true
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && errors.Is(statError(path), fs.ErrNotExist) {
		names[filepath.Join(dir, filepath.Base(path))] = true
	}
	return names
}

func statError(path string) error {
	_, err := os.Lstat(path)
	return err
}

// unknownOwner is the owner of lines of which nothing is known. The owner of lines that something else changed after
// the change i is unknownOwner-1-i.
const unknownOwner = -1

// statesOf returns the spans of each content that the changes left, by the hash of the content. The spans are nil if
// the owners of the lines are not known.
func statesOf(changes []entry) map[string][]span {
	states := map[string][]span{absent: {}}
	for i, e := range changes {
		if e.After == "" { // it was interrupted
			continue
		}
		if e.Tool == undoTool {
			if _, known := states[e.After]; known {
				continue // the content came back, with its owners
			}
		}
		if e.After == absent || e.After == hashOf(nil) {
			states[e.After] = []span{}
			continue
		}
		states[e.After] = spansAfter(states, changes, i)
	}
	return states
}

// undoTool is the name of the tool in changes that an undo makes.
const undoTool = "undo"

// spansAfter returns the spans after a change; nil if they are not known.
func spansAfter(states map[string][]span, changes []entry, i int) []span {
	e := changes[i]
	if e.Count == 0 { // an earlier release wrote it
		return nil
	}
	hunks := make([]hunk, len(e.Hunks))
	before := e.Count
	for n, h := range e.Hunks {
		hunks[n] = hunk{h[0], h[1], h[2]}
		before += h[1] - h[2]
	}
	spans, known := states[e.Before]
	switch {
	case before < 0:
		return nil
	case !known && i > 0:
		spans = []span{{before, unknownOwner - i}}
	case spans == nil:
		spans = []span{{before, unknownOwner}}
	}
	after, ok := applyHunks(spans, hunks, i)
	if !ok || totalLines(after) != e.Count {
		return nil
	}
	return after
}

// setRanges sets the ranges from spans. Owners are indexes of the changes.
func (b *Blame) setRanges(spans []span, changes []entry) {
	written := map[int]*Written{}
	of := func(i int) *Written {
		if written[i] == nil {
			written[i] = changes[i].written()
		}
		return written[i]
	}
	line := 1
	for _, s := range spans {
		r := Range{First: line, Last: line + s.lines - 1}
		switch {
		case s.owner >= 0:
			r.By = of(s.owner)
		case s.owner < unknownOwner:
			r.After = of(unknownOwner - s.owner - 1)
		}
		b.Ranges = append(b.Ranges, r)
		line += s.lines
	}
}

// Line returns the range with a line; ok is false if the file has no such line.
func (b Blame) Line(line int) (r Range, ok bool) {
	for _, r := range b.Ranges {
		if r.First <= line && line <= r.Last {
			return r, true
		}
	}
	return Range{}, false
}

// CallChanges returns the changes that a call made, by the ID of its audit record.
func (l *Log) CallChanges(call string) ([]*Written, error) {
	all, err := l.entries()
	if err != nil {
		return nil, err
	}
	var found []*Written
	for _, e := range all {
		if call != "" && e.Call == call {
			found = append(found, e.written())
		}
	}
	return found, nil
}
