package guards

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// fileLabelsAge is how long the labels of files in memory are used before they are read again: another process may
	// have written a file.
	fileLabelsAge = time.Second
	// maxWalked is the number of files that are examined after a command.
	maxWalked = 50_000
)

// fileLabels are the labels of files that runs have written.
type fileLabels struct {
	guard *FlowGuard

	mu   sync.Mutex
	read time.Time
	all  map[string]store.FlowFile
}

// current returns the labels. The map must not be changed.
func (l *fileLabels) current(ctx context.Context) (map[string]store.FlowFile, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.guard.o.Now()
	if l.all != nil && now.Sub(l.read) < fileLabelsAge && !now.Before(l.read) {
		return l.all, nil
	}
	files, err := l.guard.o.Store.FlowFiles(ctx)
	if err != nil {
		return nil, err
	}
	l.all, l.read = make(map[string]store.FlowFile, len(files)), now
	for _, f := range files {
		l.all[f.Path] = f
	}
	return l.all, nil
}

// add stores labels of files.
func (l *fileLabels) add(ctx context.Context, files ...store.FlowFile) error {
	if len(files) == 0 {
		return nil
	}
	err := l.guard.o.Store.JoinFlowFiles(context.WithoutCancel(ctx), files...)
	l.mu.Lock()
	l.all = nil
	l.mu.Unlock()
	return err
}

// realFile returns a path as the labels of files have it.
func realFile(path string) string {
	if real, err := resolveLinks(path); err == nil {
		path = real
	}
	return foldCase(path)
}

// examples matches names of files that show what another file may have, such as .env.example.
var examples = regexp.MustCompile(`(?i)\.(example|sample|template|dist)$`)

// isPrivateFile reports whether the settings say that a file is private.
func (g *FlowGuard) isPrivateFile(path string) bool {
	return matchesGlob(g.o.PrivateFiles, filepath.ToSlash(path)) && !examples.MatchString(path)
}

// fileSource returns the source for a file that a run in the directory dir has read. The directory is as realFile
// returns it.
func (g *FlowGuard) fileSource(ctx context.Context, dir, path string) flow.Source {
	s := flow.Source{Kind: "file", Name: path, Label: flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Internal}}
	real := realFile(path)
	inRoot := func(root string) bool { return root != "" && isBelow(root, real) }
	if inRoot(dir) || slices.ContainsFunc(g.o.Roots, inRoot) {
		s.Label.Integrity = flow.Project
	}
	if g.isPrivateFile(real) || path != real && g.isPrivateFile(path) {
		s.Label.Confidentiality = flow.Private
	}
	written, err := g.files.current(ctx)
	if err != nil {
		s.Label = s.Label.Join(flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private})
		return s
	}
	if f, ok := written[real]; ok {
		s.Label = s.Label.Join(f.Label)
		s.Name += ", written from " + f.Origin.String()
	}
	return s
}

// documents are the extensions of files that inform and are not run, and instructions the names of such files that are
// read as instructions or by programs.
var (
	documents    = []string{".md", ".txt", ".csv", ".tsv", ".rst", ".adoc", ".log"}
	instructions = regexp.MustCompile(`(?i)^(agents|claude|gemini|copilot-instructions|skill|requirements.*|constraints.*|cmakelists|robots|conftest|test.*|` +
		`qwen|crush|warp|conventions|.*(rules|instructions|prompt))\.`)
)

// isDocument reports whether a file informs and is not run, by its name.
func isDocument(path string) bool {
	return slices.Contains(documents, strings.ToLower(filepath.Ext(path)))
}

// isHidden reports whether a path has a part below a directory that begins with a dot: such directories are often those
// of programs. The paths are as realFile returns them.
func isHidden(dir, path string) bool {
	if below, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(below) {
		path = below
	}
	return strings.HasPrefix(path, ".") || strings.Contains(filepath.ToSlash(path), "/.")
}

// writesDocument reports whether a call writes a document that did not exist before, or that a run has written. Its
// label follows the file, so no question is needed.
func (g *FlowGuard) writesDocument(ctx context.Context, q deck.Question) bool {
	path, err := g.o.Context.ResolvePath(q.Caller, rawjson.GetString(argumentsOf(q), "path"))
	if err != nil {
		return false
	}
	real, name := realFile(path), filepath.Base(path)
	if !isDocument(name) || instructions.MatchString(name) || isHidden(realFile(q.Caller.Dir), real) {
		return false
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return g.fileSource(ctx, realFile(q.Caller.Dir), path).Label.Integrity >= flow.Project
	}
	written, err := g.files.current(ctx)
	_, ok := written[real]
	return ok && err == nil
}

// changedFiles returns the files below a directory that have changed since a time, or whose directory was moved.
func changedFiles(dir string, since time.Time) (changed []string) {
	n, moved := 0, ""
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // what cannot be read is left out
		if n++; n > maxWalked {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() && entry.Name() == ".git" {
			return skipDirectory(entry)
		}
		info, err := entry.Info()
		isMoved := moved != "" && isBelow(moved, path)
		switch {
		case err != nil:
		case entry.IsDir():
			if !isMoved && path != dir && !changeTime(info).Before(since) && info.ModTime().Before(since) {
				moved = path // nothing was added to it
			}
		case info.Mode().IsRegular() && (isMoved || !changeTime(info).Before(since)):
			changed = append(changed, path)
		}
		return nil
	})
	return changed
}

// skipDirectory returns fs.SkipDir for a directory, so that a walk does not enter it, and nil for other entries. entry is
// nil if it could not be read.
func skipDirectory(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}
