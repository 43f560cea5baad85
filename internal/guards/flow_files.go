package guards

import (
	"context"
	"encoding/json"
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

// fileSource returns the source for a file that a run in the directory dir has read. The directory is as realFile
// returns it.
func (g *FlowGuard) fileSource(ctx context.Context, dir, path string) flow.Source {
	s := flow.Source{Kind: "file", Name: path, Label: flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Internal}}
	real := realFile(path)
	inRoot := func(root string) bool { return root != "" && isBelow(root, real) }
	if inRoot(dir) || slices.ContainsFunc(g.o.Roots, inRoot) {
		s.Label.Integrity = flow.Project
	}
	if matchesGlob(g.o.PrivateFiles, filepath.ToSlash(real)) || path != real && matchesGlob(g.o.PrivateFiles, filepath.ToSlash(path)) {
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
	instructions = regexp.MustCompile(`(?i)^(agents|claude|gemini|copilot-instructions|skill|requirements.*|constraints.*|cmakelists|robots|conftest|.*rules)\.`)
)

// writesDocument reports whether a call writes a document that did not exist before, or that a run has written. Its
// label follows the file, so no question is needed.
func (g *FlowGuard) writesDocument(ctx context.Context, q deck.Question) bool {
	path, err := g.o.Context.ResolvePath(q.Caller, rawjson.GetString(argumentsOf(q), "path"))
	if err != nil {
		return false
	}
	real, name := realFile(path), filepath.Base(path)
	if !slices.Contains(documents, strings.ToLower(filepath.Ext(name))) || instructions.MatchString(name) || strings.HasPrefix(name, ".") {
		return false
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return g.fileSource(ctx, realFile(q.Caller.Dir), path).Label.Integrity >= flow.Project
	}
	written, err := g.files.current(ctx)
	_, ok := written[real]
	return ok && err == nil
}

// downloads matches commands that may print what comes from the network.
var downloads = regexp.MustCompile(`://|\b(curl|wget|nc|ncat|netcat|ssh|scp|sftp|ftp|telnet|gh|git\s+(-\S+\s+)*(clone|fetch|pull|ls-remote))\b`)

// readsAnything matches commands that may read files that they do not name.
var readsAnything = regexp.MustCompile("[*?\\[$`]|\\b(find|xargs|grep|rg|tar|zip|rsync|python3?|node|perl|ruby|sh|bash)\\b|\\s-\\w*[rR]")

// commandSource returns the source for the output of a command in a directory: what it may have read. Files of the
// project are project text, and text from the network is untrusted. A file that a run wrote counts if the command names
// it, or could read it without.
func (g *FlowGuard) commandSource(ctx context.Context, dir, command string) flow.Source {
	s := flow.Source{Kind: "command", Name: firstWords(command), Label: flow.Label{Integrity: flow.Project, Confidentiality: flow.Internal}}
	if downloads.MatchString(command) {
		s.Label.Integrity = flow.Untrusted
	}
	written, err := g.files.current(ctx)
	if err != nil {
		s.Label = s.Label.Join(flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private})
		return s
	}
	anything, folded := readsAnything.MatchString(command), foldCase(command)
	for path, f := range written {
		if strings.Contains(folded, filepath.Base(path)) || anything && isBelow(realFile(dir), path) {
			s.Label = s.Label.Join(f.Label)
		}
	}
	for _, glob := range g.o.PrivateFiles {
		if name := strings.Trim(filepath.Base(glob), "*"); name != "" && strings.Contains(folded, strings.ToLower(name)) {
			s.Label.Confidentiality = flow.Private
		}
	}
	return s
}

// interprets matches commands that may run a file that they name.
var interprets = regexp.MustCompile(`(^|[\s;&|])(\.|source|eval|exec|sh|bash|zsh|dash|ksh|python[\d.]*|node|deno|bun|perl|ruby|php|make|chmod|patch|xargs|env|sudo|git\s+apply)(\s|$)|\./`)

// runFile returns the command of a call as a value that is not trusted, if the command may run a file that a run has
// written from text that is not trusted. Otherwise it returns nil.
func (g *FlowGuard) runFile(ctx context.Context, q deck.Question, arguments json.RawMessage) *flow.Value {
	command := rawjson.GetString(arguments, "command")
	if q.Spec.Server != "" || !slices.Contains(g.o.Tools.Commands, q.Spec.Tool) || !interprets.MatchString(command) {
		return nil
	}
	written, err := g.files.current(ctx)
	if err != nil {
		return &flow.Value{Path: "command", Text: command}
	}
	for path, f := range written {
		if f.Label.Integrity < flow.Project && strings.Contains(foldCase(command), filepath.Base(path)) {
			return &flow.Value{Path: "command", Text: command, Label: f.Label,
				Origin: &flow.Source{Kind: "file", Name: path + ", written from " + f.Origin.String(), Label: f.Label}}
		}
	}
	return nil
}

func firstWords(command string) string {
	words := strings.Fields(command)
	return strings.Join(words[:min(len(words), 2)], " ")
}

// changedFiles returns the files below a directory that have changed since a time.
func changedFiles(dir string, since time.Time) (changed []string) {
	n := 0
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // what cannot be read is left out
		if n++; n > maxWalked {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() {
			if entry != nil && entry.IsDir() && entry.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && !changeTime(info).Before(since) {
			changed = append(changed, path)
		}
		return nil
	})
	return changed
}
