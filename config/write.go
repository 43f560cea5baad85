package config

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
	"time"

	"github.com/gofrs/flock"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// maxRewritten is the most bytes of a file that is changed. The clients' own files grow with what they remember: more
// than MaxFile is usual.
const maxRewritten = 64 << 20

// lockWait is how long a writer waits for another one, lockRetry how often it asks.
const (
	lockWait  = 30 * time.Second
	lockRetry = 5 * time.Millisecond
)

// Update changes a file of the configuration: change is given what the file holds, nil where there is none, and says
// what it shall hold. Writers of one file, also of different processes, take turns, and none loses what another wrote.
// A reader sees the old file or the new one, whole; so does the next start after a crash.
//
// A link is followed, and stays. A new file has mode 0600 and a directory that is made for it 0700; a file that exists
// keeps its mode. The file's name says its format: .toml, .yaml or .yml, else JSON.
//
// An error of change is returned as it is, and nothing is written. Any other is a *drawbridge.Fault: the file does not
// parse, or would not after the change; it is no regular file, or larger than MaxFile; it cannot be locked, read or
// written.
func Update(path string, change func([]byte) ([]byte, error)) error {
	format := doc.FormatOf(path)
	return rewrite(path, func(before version) (version, error) {
		if len(before.data) > MaxFile {
			return version{}, broken("read "+path, tooLarge(MaxFile))
		}
		if err := doc.Check(format, before.data); err != nil {
			return version{}, broken("read "+path, err)
		}
		data, err := change(before.data)
		if err != nil {
			return version{}, err
		}
		if !before.exists && len(data) == 0 {
			return before, nil
		}
		if err := doc.Check(format, data); err != nil {
			return version{}, broken("change "+path, err)
		}
		return version{data, true}, nil
	})
}

// A version is what a file holds at one moment; where there is no file, nothing.
type version struct {
	data   []byte
	exists bool
}

func (v version) equal(other version) bool {
	return v.exists == other.exists && bytes.Equal(v.data, other.data)
}

// held is what the file holds; nil where there is none, and only there.
func (v version) held() []byte {
	if v.exists && v.data == nil {
		return []byte{}
	}
	return v.data
}

// rewrite does what Update promises, for any content, and takes the file away where it shall not exist.
func rewrite(path string, change func(version) (version, error)) (err error) {
	target, err := targetOf(path)
	if err != nil {
		return broken("find "+path, errors.New(cause(err)))
	}
	dir := filepath.Dir(target)
	made := missingDirs(dir)
	defer func() { removeDirs(made) }() // those that stayed empty: nothing was written
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return broken("make "+dir, errors.New(cause(err)))
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()
	before, mode, err := readVersion(target)
	if err != nil {
		return broken("read "+path, errors.New(cause(err)))
	}
	after, err := change(before)
	if err != nil || after.equal(before) {
		return err
	}
	if !after.exists {
		err = os.Remove(target)
	} else {
		err = replaceFile(target, after.data, mode)
	}
	if err != nil {
		return broken("write "+path, errors.New(cause(err)))
	}
	return nil
}

// targetOf follows links, also to a file that is not there yet.
func targetOf(path string) (string, error) {
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

// missingDirs lists the directories that are to be made for dir, the deepest first.
func missingDirs(dir string) (missing []string) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}

// removeDirs takes directories away that are empty; others stay.
func removeDirs(dirs []string) {
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
		return nil, broken("lock "+dir, errors.New(cause(err)))
	}
	return func() { _ = lock.Unlock() }, nil
}

// readVersion reads a file and its mode. The mode of one that is not there is that of a new one.
func readVersion(path string) (version, fs.FileMode, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return version{}, 0o600, nil
	case err != nil:
		return version{}, 0, err
	case !info.Mode().IsRegular():
		return version{}, 0, errors.New("this is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return version{}, 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRewritten+1))
	if len(data) > maxRewritten {
		err = tooLarge(maxRewritten)
	}
	return version{data, true}, info.Mode().Perm(), err
}

func tooLarge(limit int) error { return fmt.Errorf("the file is larger than %d MiB", limit>>20) }

// replaceFile puts data in the place of a file, as one step.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
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
