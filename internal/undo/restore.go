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

// A Run describes a run that changed files. A run is a sequence of calls of one client; see deck.RunOf.
type Run struct {
	ID string `json:"run"`
	// First and Last are the times of the first and the last stored change of the run.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Caller, Client and Dir are the values of the run's last change; see [Change].
	Caller string `json:"caller"`
	Client string `json:"client,omitempty"`
	Dir    string `json:"dir,omitempty"`
	// Files are the changed files, in the order of their first changes.
	Files []File `json:"files"`
}

// A File describes a file that a run changed, once or several times.
type File struct {
	Path  string   `json:"path"`
	Tools []string `json:"tools"`
	// Lines are the numbers of the first and the last line that the run's last change of the file modified.
	Lines [2]int `json:"lines,omitzero"`

	before, after string
	mode          fs.FileMode
}

// An Action is what an undo does with one file.
type Action string

// The actions. Restore writes the content that the file had before the run. Delete deletes a file that the run created.
// Unchanged means that the file already has its content from before the run. Refuse does not change the file, because
// something else changed it after the run, or because its earlier content is not available.
const (
	Restore   Action = "restore"
	Delete    Action = "delete"
	Unchanged Action = "unchanged"
	Refuse    Action = "refuse"
)

// A Step is the action of a planned or completed undo on one file.
type Step struct {
	Path   string `json:"path"`
	Action Action `json:"action"`
	// Reason explains why the file is not changed; it is set for the actions Unchanged and Refuse.
	Reason string `json:"reason,omitempty"`

	file File
}

// ErrUnknownRun reports that no changes of the requested run are stored: the run changed no file, or its changes were
// removed from the log.
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

// addChange adds the change e to the element of r.Files for its file. If there is none, it adds the element.
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
// is no such run. Find also returns an error if the IDs of several runs begin with id.
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

// Plan returns the steps that Undo would take for a run, one for each file. It changes no file.
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

// Undo restores the files of the run r to their contents before the run, and returns a step for each file. A file that
// was changed after the run is not restored. Undo stores its own changes in the log as changes of the run c.Run, so
// that they can be undone too. If a file cannot be restored because of an error, Undo stops. It then returns the error,
// and the steps of the files before this file, which stay restored.
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
