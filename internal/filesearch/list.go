// Package filesearch finds files and the lines in them. It follows the ignore files of a tree, does not follow links,
// reads regular files only, and returns the same result each time, whatever the order in which directories are read.
package filesearch

import (
	"context"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// An Opener opens a file or a directory by its absolute path, without waiting for the other end of a FIFO.
type Opener interface {
	Open(path string) (fs.File, error)
}

// ListOptions select the files of a tree.
type ListOptions struct {
	// Hidden includes names that begin with a dot, except .git.
	Hidden bool
	// NoIgnore includes what ignore files exclude.
	NoIgnore bool
	// Dirs includes directories in the result.
	Dirs bool
	// Skip, if set, excludes a path, and everything below if it is a directory. It is called from several goroutines.
	Skip func(path string) bool
}

// maxListed is the number of files and directories of a tree that are looked at.
const maxListed = 1_000_000

// A File is a file or a directory of a tree.
type File struct {
	// Path is relative to the root, with slashes.
	Path string
	Dir  bool
}

// A Listing is the files of a tree, sorted by path.
type Listing struct {
	Files []File
	// Unreadable counts the directories that could not be read. Incomplete is true if the tree has more entries than are
	// looked at.
	Unreadable int
	Incomplete bool
}

// alwaysSkipped are directories that hold copies and no sources.
var alwaysSkipped = []string{".git", "node_modules"}

// A lister lists a tree with several goroutines.
type lister struct {
	files Opener
	root  string
	o     ListOptions

	mu    sync.Mutex
	wake  *sync.Cond
	queue []listTask
	busy  int
	seen  int
	found Listing
	err   error
}

// A listTask is a directory to read.
type listTask struct {
	rel    string // "" or "a/b/"
	ignore *ignoreList
}

// List returns the files below a directory. The error is that of the root, or ctx's.
func List(ctx context.Context, files Opener, root string, o ListOptions) (Listing, error) {
	l := &lister{files: files, root: root, o: o, queue: []listTask{{ignore: nil}}}
	l.wake = sync.NewCond(&l.mu)
	stop := context.AfterFunc(ctx, func() { l.fail(ctx.Err()) })
	defer stop()
	var workers sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		workers.Go(l.work)
	}
	workers.Wait()
	if l.err != nil {
		return Listing{}, l.err
	}
	slices.SortFunc(l.found.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return l.found, nil
}

// fail ends the work with an error.
func (l *lister) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.wake.Broadcast()
}

// work reads directories until there are none left.
func (l *lister) work() {
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && l.busy > 0 && l.err == nil {
			l.wake.Wait()
		}
		if len(l.queue) == 0 || l.err != nil {
			l.mu.Unlock()
			return
		}
		task := l.queue[len(l.queue)-1]
		l.queue = l.queue[:len(l.queue)-1]
		l.busy++
		l.mu.Unlock()
		files, dirs, err := l.readDir(task)
		l.mu.Lock()
		l.busy--
		l.add(task, files, dirs, err)
		l.wake.Broadcast()
		l.mu.Unlock()
	}
}

// add adds the result of a directory. It needs mu.
func (l *lister) add(task listTask, files []File, dirs []listTask, err error) {
	switch {
	case err != nil && task.rel == "":
		if l.err == nil {
			l.err = err
		}
	case err != nil:
		l.found.Unreadable++
	case l.seen+len(files)+len(dirs) > maxListed:
		l.found.Incomplete = true
		l.queue = nil
	default:
		l.seen += len(files) + len(dirs)
		l.found.Files = append(l.found.Files, files...)
		l.queue = append(l.queue, dirs...)
	}
}

// readDir reads one directory, and returns its files and the directories to read.
func (l *lister) readDir(task listTask) (files []File, dirs []listTask, err error) {
	dir := filepath.Join(l.root, filepath.FromSlash(task.rel))
	entries, err := readEntries(l.files, dir)
	if err != nil {
		return nil, nil, err
	}
	ignore := task.ignore
	if !l.o.NoIgnore {
		ignore = l.readIgnoreFiles(task, dir, entries)
	}
	for _, e := range entries {
		name := e.Name()
		isDir := e.IsDir()
		if !isDir && !e.Type().IsRegular() || !l.o.Hidden && strings.HasPrefix(name, ".") ||
			isDir && slices.Contains(alwaysSkipped, name) {
			continue
		}
		rel := task.rel + name
		if ignore != nil && ignore.ignores(rel, isDir) || l.o.Skip != nil && l.o.Skip(filepath.Join(dir, name)) {
			continue
		}
		if !isDir || l.o.Dirs {
			files = append(files, File{rel, isDir})
		}
		if isDir {
			dirs = append(dirs, listTask{rel + "/", ignore})
		}
	}
	return files, dirs, nil
}

// readIgnoreFiles returns the patterns that hold in a directory.
func (l *lister) readIgnoreFiles(task listTask, dir string, entries []fs.DirEntry) *ignoreList {
	var texts [][]byte
	for _, name := range ignoreFiles {
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name && e.Type().IsRegular() }) {
			continue
		}
		if text, err := readSmall(l.files, filepath.Join(dir, name)); err == nil {
			texts = append(texts, text)
		}
	}
	if texts == nil {
		return task.ignore
	}
	return parseIgnoreList(task.ignore, task.rel, texts...)
}

// readSmall reads a file up to maxIgnoreFile bytes; a larger one counts as empty.
func readSmall(files Opener, path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile+1))
	if len(text) > maxIgnoreFile {
		text = nil
	}
	return text, err
}

// readEntries returns the entries of a directory, in no order.
func readEntries(files Opener, dir string) ([]fs.DirEntry, error) {
	f, err := files.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrInvalid}
	}
	return d.ReadDir(-1)
}
