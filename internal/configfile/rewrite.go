package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/drawbridge-mcp/drawbridge"
)

// MaxFileSize is the maximum size in bytes of a file to read or change. It is large because some clients store a
// growing history in their configuration file.
const MaxFileSize = 64 << 20

// lockWait is how long a writer waits for the lock on a directory. lockRetry is the interval between attempts.
const (
	lockWait  = 30 * time.Second
	lockRetry = 5 * time.Millisecond
)

// A FileState is the content of a file at one moment. Exists is false if the file did not exist.
type FileState struct {
	Data   []byte
	Exists bool
}

// Equal reports whether two states are the same: both files have equal content, or both files do not exist.
func (v FileState) Equal(other FileState) bool {
	return v.Exists == other.Exists && bytes.Equal(v.Data, other.Data)
}

// Content returns the file's content. The result is nil only if the file does not exist.
func (v FileState) Content() []byte {
	if v.Exists && v.Data == nil {
		return []byte{}
	}
	return v.Data
}

// RewriteFile changes a file. It calls change with the file's state, and writes the state that change returns if it
// differs. If Exists is false in the new state, the file is removed. If the path is a symbolic link, its target is
// changed and the link remains. A new file has mode 0600 and a new directory 0700; an existing file keeps its mode.
//
// If change returns an error, RewriteFile writes nothing and returns this error unchanged. Any other error is a
// *drawbridge.Fault.
func RewriteFile(path string, change func(FileState) (FileState, error)) (err error) {
	target, err := ResolveLinks(path)
	if err != nil {
		return FileFault("find "+path, errors.New(WithoutPath(err)))
	}
	dir := filepath.Dir(target)
	made := MissingDirs(dir)
	defer func() { RemoveDirs(made) }() // removes only directories that are empty because nothing was written
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return FileFault("make "+dir, errors.New(WithoutPath(err)))
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()
	before, mode, err := ReadFile(target)
	if err != nil {
		return FileFault("read "+path, errors.New(WithoutPath(err)))
	}
	after, err := change(before)
	if err != nil || after.Equal(before) {
		return err
	}
	if !after.Exists {
		err = os.Remove(target)
	} else {
		err = ReplaceFile(target, after.Data, mode)
	}
	if err != nil {
		return FileFault("write "+path, errors.New(WithoutPath(err)))
	}
	return nil
}

// ResolveLinks returns the path to which the symbolic link at path leads. The target need not exist. If path is not a
// link, the result is its absolute path.
func ResolveLinks(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		switch {
		case err != nil: // not a link, or missing; a later read reports other problems
			return filepath.Abs(path)
		case filepath.IsAbs(to):
			path = to
		default:
			path = filepath.Join(filepath.Dir(path), to)
		}
	}
	return "", errors.New("too many links")
}

// MissingDirs returns the directories that must be created for dir: dir and its parents that do not exist, the deepest
// first.
func MissingDirs(dir string) (missing []string) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}

// RemoveDirs removes the directories that are empty, in the order of dirs. Other directories remain.
func RemoveDirs(dirs []string) {
	for _, dir := range dirs {
		_ = os.Remove(dir) // a directory that is missing or not empty is not an error
	}
}

// lockDir locks dir. It waits up to lockWait until no other writer has the lock. It locks the directory itself, so that
// no lock file remains in a person's home directory. On Windows a directory cannot be locked, so a lock file is used.
func lockDir(dir string) (unlock func(), err error) {
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	if runtime.GOOS == "windows" {
		lock = flock.New(filepath.Join(dir, ".drawbridge.lock"))
	}
	if err := waitForLock(lock); err != nil {
		return nil, FileFault("lock "+dir, errors.New(WithoutPath(err)))
	}
	return func() { _ = lock.Unlock() }, nil
}

// waitForLock acquires the lock. It waits up to lockWait for another writer. It takes no context, because a writer
// releases the lock within milliseconds.
func waitForLock(lock *flock.Flock) error {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockRetry) {
		locked, err := lock.TryLock()
		if locked || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("another program has held the lock for too long")
		}
	}
}

// ReadFile returns the state of a file and its mode. For a missing file the mode is that of a new file.
func ReadFile(path string) (FileState, fs.FileMode, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FileState{}, 0o600, nil
	case err != nil:
		return FileState{}, 0, err
	case !info.Mode().IsRegular():
		return FileState{}, 0, errors.New("this is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return FileState{}, 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if len(data) > MaxFileSize {
		err = TooLargeError(MaxFileSize)
	}
	return FileState{data, true}, info.Mode().Perm(), err
}

// TooLargeError returns the error for a file that is larger than limit bytes. limit must be a multiple of 1 MiB.
func TooLargeError(limit int) error { return fmt.Errorf("the file is larger than %d MiB", limit>>20) }

// ReplaceFile atomically replaces the content of the file at path, and syncs it to the disk.
func ReplaceFile(path string, data []byte, mode fs.FileMode) error {
	temp, err := writeTempFile(path, data, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeTempFile writes data to a new file in the directory of path, syncs it to the disk and returns its path.
func writeTempFile(path string, data []byte, mode fs.FileMode) (temp string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".drawbridge-*.tmp") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// syncDir syncs a rename in dir to the disk. On Windows it does nothing, because a rename is written through.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// FileFault returns the fault for a failed step on a file that a person wrote or named.
func FileFault(step string, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step, Err: err}
}

// WithoutPath returns the text of a file system error without the path. The fault's step already contains the path.
func WithoutPath(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file or directory"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}

// IsDanglingLink reports whether path does not exist because it, or a parent directory, is a link to a missing target.
func IsDanglingLink(path string) bool {
	for {
		info, err := os.Lstat(path)
		if err == nil {
			_, err = os.Stat(path)
			return info.Mode()&fs.ModeSymlink != 0 && errors.Is(err, fs.ErrNotExist)
		}
		above := filepath.Dir(path)
		if above == path || !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		path = above
	}
}

// SameFile reports whether two paths are equal or lead to the same file.
func SameFile(a, b string) bool { return a == b || IsOneOfFiles(a, StatExisting([]string{b})) }

// StatExisting returns the fs.FileInfo of each path at which a file exists.
func StatExisting(paths []string) (infos []fs.FileInfo) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			infos = append(infos, info)
		}
	}
	return infos
}

// IsOneOfFiles reports whether path leads to one of the files that infos describe.
func IsOneOfFiles(path string, infos []fs.FileInfo) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(infos, func(other fs.FileInfo) bool { return os.SameFile(info, other) })
}

// SplitPaths splits each value at its commas. A value that is the path of an existing file is not split; a relative
// path starts at dir.
func SplitPaths(dir string, values []string) []string {
	var paths []string
	for _, value := range values {
		whole := value
		if !filepath.IsAbs(whole) {
			whole = filepath.Join(dir, whole)
		}
		if _, err := os.Stat(whole); err == nil || !strings.Contains(value, ",") {
			paths = append(paths, value)
			continue
		}
		for part := range strings.SplitSeq(value, ",") {
			paths = append(paths, strings.TrimSpace(part))
		}
	}
	return paths
}

// UnreadableFault returns the fault for a path that a person named and that cannot be read.
func UnreadableFault(path string, err error) error {
	if path == "" {
		return FileFault("read the configuration", errors.New("the path is empty"))
	}
	fault := FileFault("read "+path, errors.New(WithoutPath(err)))
	fault.Next = "name a file, or a directory to search"
	return fault
}
