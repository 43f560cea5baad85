// Package disk changes files of people's as one step.
//
// It promises that a reader sees the old file or the new one, whole, and so does the next start after a crash; that writers
// of one file, also of different processes, take turns; and that nothing is left behind. What is in the files is nobody's
// business here.
package disk

import (
	"bytes"
	"context"
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

// MaxSize is the most bytes of a file that is changed. The clients' own files grow with what they remember.
const MaxSize = 64 << 20

// lockWait is how long a writer waits for another one, lockRetry how often it asks.
const (
	lockWait  = 30 * time.Second
	lockRetry = 5 * time.Millisecond
)

// A Version is what a file holds at one moment; where there is no file, nothing.
type Version struct {
	Data   []byte
	Exists bool
}

// Equal says whether two versions are the same: to the byte, or in that there is no file.
func (v Version) Equal(other Version) bool {
	return v.Exists == other.Exists && bytes.Equal(v.Data, other.Data)
}

// Held is what the file holds; nil where there is none, and only there.
func (v Version) Held() []byte {
	if v.Exists && v.Data == nil {
		return []byte{}
	}
	return v.Data
}

// Rewrite changes a file: change is given what it holds and says what it shall hold; a file that shall not exist is taken
// away. A link is followed, and stays. A new file has mode 0600 and a directory that is made for it 0700; a file that exists
// keeps its mode. An error of change is returned as it is, and nothing is written; any other is a *drawbridge.Fault.
func Rewrite(path string, change func(Version) (Version, error)) (err error) {
	target, err := Target(path)
	if err != nil {
		return Broken("find "+path, errors.New(Cause(err)))
	}
	dir := filepath.Dir(target)
	made := MissingDirs(dir)
	defer func() { RemoveDirs(made) }() // those that stayed empty: nothing was written
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Broken("make "+dir, errors.New(Cause(err)))
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()
	before, mode, err := Read(target)
	if err != nil {
		return Broken("read "+path, errors.New(Cause(err)))
	}
	after, err := change(before)
	if err != nil || after.Equal(before) {
		return err
	}
	if !after.Exists {
		err = os.Remove(target)
	} else {
		err = Replace(target, after.Data, mode)
	}
	if err != nil {
		return Broken("write "+path, errors.New(Cause(err)))
	}
	return nil
}

// Target follows links, also to a file that is not there yet.
func Target(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		switch {
		case err != nil: // it is no link, or not there; reading it says what else is wrong
			return filepath.Abs(path)
		case filepath.IsAbs(to):
			path = to
		default:
			path = filepath.Join(filepath.Dir(path), to)
		}
	}
	return "", errors.New("too many links")
}

// MissingDirs lists the directories that are to be made for dir, the deepest first.
func MissingDirs(dir string) (missing []string) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}

// RemoveDirs takes directories away that are empty; others stay.
func RemoveDirs(dirs []string) {
	for _, dir := range dirs {
		_ = os.Remove(dir) // it is not empty, or gone: both are fine
	}
}

// lockDir waits until no other writer is at work in dir. The directory itself is the lock, so that nothing is left
// behind in people's homes; Windows cannot lock one and gets a file.
func lockDir(dir string) (unlock func(), err error) {
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	if runtime.GOOS == "windows" {
		lock = flock.New(filepath.Join(dir, ".drawbridge.lock"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		if ctx.Err() != nil {
			err = errors.New("another program has held the lock for too long")
		}
		return nil, Broken("lock "+dir, errors.New(Cause(err)))
	}
	return func() { _ = lock.Unlock() }, nil
}

// Read reads a file and its mode. The mode of one that is not there is that of a new one.
func Read(path string) (Version, fs.FileMode, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Version{}, 0o600, nil
	case err != nil:
		return Version{}, 0, err
	case !info.Mode().IsRegular():
		return Version{}, 0, errors.New("this is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return Version{}, 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if len(data) > MaxSize {
		err = TooLarge(MaxSize)
	}
	return Version{data, true}, info.Mode().Perm(), err
}

// TooLarge is the error for a file with more bytes than a limit of whole MiB.
func TooLarge(limit int) error { return fmt.Errorf("the file is larger than %d MiB", limit>>20) }

// Replace puts data in the place of a file, as one step.
func Replace(path string, data []byte, mode fs.FileMode) error {
	temp, err := stage(path, data, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// stage writes data to a file beside path and has it on the disk.
func stage(path string, data []byte, mode fs.FileMode) (temp string, err error) {
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

// syncDir has a rename on the disk. Windows cannot, and need not: the rename writes through there.
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

// Broken is the fault for a step on a file that somebody wrote, or named.
func Broken(step string, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step, Err: err}
}

// Cause takes the path out of an error of the file system: the step names it already.
func Cause(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file or directory"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}

// Dangles says whether a path leads nowhere by a link: that file is one that is missing, where a path without a link is that of none.
func Dangles(path string) bool {
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

// Same says whether two paths lead to one file, or are one path.
func Same(a, b string) bool { return a == b || IsOneOf(a, Stats([]string{b})) }

// Stats describes those files that exist.
func Stats(paths []string) (infos []fs.FileInfo) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			infos = append(infos, info)
		}
	}
	return infos
}

// IsOneOf says whether a path leads to one of the files.
func IsOneOf(path string, infos []fs.FileInfo) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(infos, func(other fs.FileInfo) bool { return os.SameFile(info, other) })
}

// Split splits values on commas. A file in dir, or anywhere, whose name has a comma in it is itself.
func Split(dir string, values []string) []string {
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

// Missing is the fault of a path that was named and cannot be read.
func Missing(path string, err error) error {
	if path == "" {
		return Broken("read the configuration", errors.New("the path is empty"))
	}
	fault := Broken("read "+path, errors.New(Cause(err)))
	fault.Next = "name a file, or a directory to search"
	return fault
}
