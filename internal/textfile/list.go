// Package textfile lists the files of a directory tree, searches their lines, and replaces texts in them.
//
// [List] and [Grep] omit files that the ignore files in the tree, such as .gitignore, exclude. They do not follow
// symbolic links, and read only regular files. Results are sorted by path.
//
// [Apply] replaces texts at the request of a model, which may not know the exact text. If the exact text is not found,
// differences in line endings are ignored; then differences in white space at the ends of lines; then differences in
// indentation. The text must occur exactly once, unless Edit.All is set. All bytes outside the replaced text stay the
// same, for example a byte order mark and the line endings.
package textfile

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

// An Opener opens a file or a directory by its absolute path. Open must not block if the path is a FIFO without a
// writer.
type Opener interface {
	Open(path string) (fs.File, error)
}

// ListOptions select the files that List returns.
type ListOptions struct {
	// Hidden includes files and directories whose names begin with a dot, except directories named .git.
	Hidden bool
	// NoIgnore includes files and directories that ignore files exclude.
	NoIgnore bool
	// Dirs adds the directories of the tree to the result, not only files.
	Dirs bool
	// Skip, if not nil, reports whether the file or directory at the absolute path is excluded. If a directory is
	// excluded, everything below it is excluded too. Skip is called from several goroutines.
	Skip func(path string) bool
}

// maxListed is the maximum number of files and directories that List handles. In a larger tree it stops and sets
// Listing.Incomplete.
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
	// maxListed files and directories; then files are missing in the list.
	Unreadable int
	Incomplete bool
}

// alwaysSkipped are the names of directories that List omits, regardless of the options. They contain stored or
// installed copies of files, which people do not search.
var alwaysSkipped = []string{".git", "node_modules"}

// A lister contains the state of one call of List, which its goroutines share.
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

// A listTask is a directory that is to be read. ignore contains the rules of the ignore files in its parent
// directories.
type listTask struct {
	rel    string // relative to the root: "" or "a/b/"
	ignore *ignoreList
}

// List returns the files below the directory root. It returns an error if root cannot be read, or if ctx ends before
// the list is complete. A subdirectory that cannot be read is only counted.
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

// fail makes all workers stop. err becomes the error of List, unless there is an earlier error.
func (l *lister) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.wake.Broadcast()
}

// work takes directories from the queue and reads them. It returns when all directories are read or an error has
// occurred.
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

// add adds the files of a directory that was read to the list, and its subdirectories to the queue. err is the error of
// reading the directory. The caller must hold mu.
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

// readDir reads one directory. files are its files, and its subdirectories if ListOptions.Dirs is set. dirs are the
// subdirectories that are to be read. Excluded files and directories are omitted.
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

// readIgnoreFiles returns the ignore rules for the entries of a directory: the rules of its own ignore files, linked to
// the rules of its parent directories. An ignore file that cannot be read has no effect.
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

// readSmall returns the content of a file, or nil without an error if the file has more than maxIgnoreFile bytes.
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
