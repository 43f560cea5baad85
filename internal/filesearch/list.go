// Package filesearch lists the files of a directory tree and searches their lines. It follows the ignore files of the
// tree, does not follow symbolic links, and reads only regular files. Results are sorted, so that they do not depend on
// the order in which directories are read.
package filesearch

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// An Opener opens a file or a directory by its absolute path. It must not block when it opens a FIFO.
type Opener interface {
	Open(path string) (fs.File, error)
}

// ListOptions select the files that List returns.
type ListOptions struct {
	// Hidden includes files and directories whose names begin with a dot, except the directory .git.
	Hidden bool
	// NoIgnore includes the files that ignore files exclude.
	NoIgnore bool
	// Dirs includes directories in the result.
	Dirs bool
	// Skip, if set, reports whether a file or a directory is excluded; path is absolute. If a directory is excluded,
	// everything below it is excluded too. Skip is called from several goroutines.
	Skip func(path string) bool
}

// maxListed is the maximum number of files and directories that List reads.
const maxListed = 1_000_000

// A File is a file or a directory of a tree.
type File struct {
	// Path is relative to the root, and its separators are slashes.
	Path string
	Dir  bool
}

// A Listing is a list of the files of a tree, sorted by path.
type Listing struct {
	Files []File
	// Unreadable is the number of directories that could not be read. Incomplete is true if the tree has more than
	// maxListed entries.
	Unreadable int
	Incomplete bool
}

// alwaysSkipped are the names of directories that List never reads: they contain copies, not sources.
var alwaysSkipped = []string{".git", "node_modules"}

// A lister lists a tree. It uses several goroutines.
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
	rel    string // relative to the root: "" or "a/b/"
	ignore *ignoreList
}

// List returns the files below a directory. It returns an error if the root cannot be read or if ctx has ended.
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
	l.mu.Lock() // fail may be running
	defer l.mu.Unlock()
	if err := cmp.Or(l.err, ctx.Err()); err != nil {
		return Listing{}, err
	}
	slices.SortFunc(l.found.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return l.found, nil
}

// fail stores the first error, and makes all workers stop.
func (l *lister) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.wake.Broadcast()
}

// work reads directories from the queue until none are left or an error occurred.
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

// add adds the result of reading a directory. The caller must hold mu.
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

// readDir reads one directory, and returns its files and its subdirectories that are to be read.
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

// readIgnoreFiles returns the ignore rules for a directory: from its own ignore files and from its parent directories.
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

// readSmall returns the content of a file, or nil if the file is larger than maxIgnoreFile bytes.
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

// readEntries returns the entries of a directory, unsorted.
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
