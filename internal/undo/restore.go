package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A Run is a run that changed files.
type Run struct {
	ID string `json:"run"`
	// First and Last are the times of the first and the last change of the run.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Caller, Client and Dir are the values of the last change; see [Change].
	Caller string `json:"caller"`
	Client string `json:"client,omitempty"`
	Dir    string `json:"dir,omitempty"`
	// Files are the changed files, in the order of their first changes.
	Files []File `json:"files"`
}

// A File is a file that a run changed.
type File struct {
	Path  string   `json:"path"`
	Tools []string `json:"tools"`
	// Lines are the numbers of the first and the last line that the last change in the run modified.
	Lines [2]int `json:"lines,omitzero"`

	before, after string
	mode          fs.FileMode
}

// An Action is the action of an undo on one file.
type Action string

// The actions. Refuse leaves a file unchanged: its content is not the content that the run wrote, or cannot be
// restored.
const (
	Restore   Action = "restore"
	Delete    Action = "delete"
	Unchanged Action = "unchanged"
	Refuse    Action = "refuse"
)

// A Step is the planned or completed action of an undo on one file.
type Step struct {
	Path   string `json:"path"`
	Action Action `json:"action"`
	// Reason is why the file is left unchanged; it is set for Unchanged and Refuse.
	Reason string `json:"reason,omitempty"`

	file File
}

// ErrUnknownRun reports a run that changed nothing, or whose changes are not stored any more.
var ErrUnknownRun = errors.New("no changes of such a run are kept")

// Runs returns the runs whose changes are stored, the newest first.
func (l *Log) Runs() ([]Run, error) {
	all, err := l.entries()
	if err != nil {
		return nil, err
	}
	var runs []*Run
	byID := map[string]*Run{}
	for _, e := range all {
		r := byID[e.Run]
		if r == nil {
			r = &Run{ID: e.Run, First: e.Time}
			byID[e.Run] = r
			runs = append(runs, r)
		}
		r.Last, r.Caller, r.Client, r.Dir = e.Time, e.Caller, e.Client, e.Dir
		r.addChange(e)
	}
	slices.SortStableFunc(runs, func(a, b *Run) int { return b.Last.Compare(a.Last) })
	out := make([]Run, 0, len(runs))
	for _, r := range runs {
		out = append(out, *r)
	}
	return out, nil
}

// addChange adds a change to the entry of its file in r.Files.
func (r *Run) addChange(e entry) {
	i := slices.IndexFunc(r.Files, func(f File) bool { return f.Path == e.Path })
	if i < 0 {
		i = len(r.Files)
		r.Files = append(r.Files, File{Path: e.Path, before: e.Before, mode: fs.FileMode(e.Mode)})
	}
	f := &r.Files[i]
	f.after, f.Lines = e.After, e.Lines
	if !slices.Contains(f.Tools, e.Tool) {
		f.Tools = append(f.Tools, e.Tool)
	}
}

// Find returns the run whose ID begins with id, or the newest run if id is empty. The error is ErrUnknownRun if there
// is no such run. Find also fails if several runs have an ID with that prefix.
func (l *Log) Find(id string) (Run, error) {
	runs, err := l.Runs()
	if err != nil {
		return Run{}, err
	}
	var found []Run
	for _, r := range runs {
		if strings.HasPrefix(r.ID, id) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0:
		return Run{}, ErrUnknownRun
	case len(found) > 1 && id != "":
		return Run{}, fmt.Errorf("%d runs have an ID that begins with %q", len(found), id)
	}
	return found[0], nil
}

// Plan returns the steps of an undo of a run, one for each file. It changes nothing.
func (l *Log) Plan(r Run) []Step {
	var steps []Step
	for _, f := range r.Files {
		s := Step{Path: f.Path, file: f}
		s.Action, s.Reason = l.plan(f)
		steps = append(steps, s)
	}
	return steps
}

func (l *Log) plan(f File) (a Action, reason string) {
	content, _, err := readFile(f.Path)
	if err != nil {
		return Refuse, "it cannot be read: " + configfile.WithoutPath(err)
	}
	now := absent
	if content != nil {
		now = hashOf(content)
	}
	switch {
	case now == f.before:
		return Unchanged, "it is as it was before the run"
	case f.after == "":
		return Refuse, "it is not known what the run wrote: it was interrupted"
	case now == absent && f.after != absent:
		return Refuse, "it was deleted since"
	case now != f.after:
		return Refuse, "it was changed since"
	case f.before == absent:
		return Delete, ""
	}
	if _, err := l.content(f.before); err != nil {
		return Refuse, "its earlier content is not kept any more"
	}
	return Restore, ""
}

// Undo restores the files of a run, and returns a step for each file. It skips a file that was changed after the run.
// The undo is itself a change, made by the run in c, and can be undone too. Undo stops at the first file that it cannot
// restore, and returns the error of that file. The files before it stay restored.
func (l *Log) Undo(r Run, c Change) ([]Step, error) {
	steps := l.Plan(r)
	for i, s := range steps {
		if s.Action != Restore && s.Action != Delete {
			continue
		}
		c.Path = s.Path
		if err := l.undoFile(s, c); err != nil {
			return steps[:i], fmt.Errorf("restore %s: %w", s.Path, err)
		}
	}
	return steps, nil
}

func (l *Log) undoFile(s Step, c Change) error {
	done, err := l.Before(c)
	if err != nil {
		return err
	}
	if s.Action == Delete {
		if err := os.Remove(s.Path); err != nil {
			return err
		}
		return done(nil)
	}
	content, err := l.content(s.file.before)
	if err != nil {
		return err
	}
	path, err := configfile.ResolveLinks(s.Path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := configfile.ReplaceFile(path, content, s.file.mode); err != nil {
		return err
	}
	return done(content)
}
