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

// MaxFileSize is the maximum size in bytes of a file to change. Clients' own files grow with their history.
const MaxFileSize = 64 << 20

// lockWait is how long a writer waits for another one, lockRetry the interval between attempts.
const (
	lockWait  = 30 * time.Second
	lockRetry = 5 * time.Millisecond
)

// A FileState is the content of a file at one moment, or the fact that it does not exist.
type FileState struct {
	Data   []byte
	Exists bool
}

// Equal reports whether two states are the same: equal bytes, or no file in both.
func (v FileState) Equal(other FileState) bool {
	return v.Exists == other.Exists && bytes.Equal(v.Data, other.Data)
}

// Content returns the file's content; nil only if the file does not exist.
func (v FileState) Content() []byte {
	if v.Exists && v.Data == nil {
		return []byte{}
	}
	return v.Data
}

// RewriteFile changes a file: change gets its state and returns the new one; a new state without a file removes it. A
// link is followed, and stays. A new file has mode 0600 and a new directory 0700; an existing file keeps its mode. An
// error of change is returned unchanged, and nothing is written; any other is a *drawbridge.Fault.
func RewriteFile(path string, change func(FileState) (FileState, error)) (err error) {
	target, err := ResolveLinks(path)
	if err != nil {
		return FileFault("find "+path, errors.New(WithoutPath(err)))
	}
	dir := filepath.Dir(target)
	made := MissingDirs(dir)
	defer func() { RemoveDirs(made) }() // only empty ones are removed: nothing was written
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

// ResolveLinks follows links, also to a missing file.
func ResolveLinks(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		switch {
		case err != nil: // not a link, or missing; reading it reports other problems
			return filepath.Abs(path)
		case filepath.IsAbs(to):
			path = to
		default:
			path = filepath.Join(filepath.Dir(path), to)
		}
	}
	return "", errors.New("too many links")
}

// MissingDirs lists the missing directories on the way to dir, the deepest first.
func MissingDirs(dir string) (missing []string) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}

// RemoveDirs removes the directories that are empty.
func RemoveDirs(dirs []string) {
	for _, dir := range dirs {
		_ = os.Remove(dir) // not empty or missing: both are fine
	}
}

// lockDir waits until no other writer works in dir. The directory itself is locked, so that no lock file is left in
// people's homes. Windows cannot lock a directory and uses a file.
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

// waitForLock takes the lock, and waits at most lockWait for another writer. It takes no context: a writer holds the
// lock for milliseconds only.
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

// ReadFile reads a file and its mode. A missing file has the mode of a new one.
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

// TooLargeError is the error for a file with more bytes than a limit of whole MiB.
func TooLargeError(limit int) error { return fmt.Errorf("the file is larger than %d MiB", limit>>20) }

// ReplaceFile replaces a file atomically.
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

// writeTempFile writes data to a file beside path and syncs it to the disk.
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

// syncDir syncs a rename to the disk. Windows does not support this and need not: its rename writes through.
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

// FileFault returns the fault for a step on a file that a person wrote or named.
func FileFault(step string, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step, Err: err}
}

// WithoutPath returns the text of a file system error without the path, which the step names already.
func WithoutPath(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file or directory"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}

// IsDanglingLink reports whether path is a link to a missing target.
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

// SameFile reports whether two paths lead to one file, or are equal.
func SameFile(a, b string) bool { return a == b || IsOneOfFiles(a, StatExisting([]string{b})) }

// StatExisting returns the info of the files that exist.
func StatExisting(paths []string) (infos []fs.FileInfo) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			infos = append(infos, info)
		}
	}
	return infos
}

// IsOneOfFiles reports whether a path leads to one of the files.
func IsOneOfFiles(path string, infos []fs.FileInfo) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(infos, func(other fs.FileInfo) bool { return os.SameFile(info, other) })
}

// SplitPaths splits values at commas. The name of an existing file, absolute or in dir, is not split.
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

// UnreadableFault returns the fault for a named path that cannot be read.
func UnreadableFault(path string, err error) error {
	if path == "" {
		return FileFault("read the configuration", errors.New("the path is empty"))
	}
	fault := FileFault("read "+path, errors.New(WithoutPath(err)))
	fault.Next = "name a file, or a directory to search"
	return fault
}
