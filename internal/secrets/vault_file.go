package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"

	"github.com/gofrs/flock"
)

const (
	// writeLockFile is the file that a writer of the vault locks. tempFile is the file that the writer then writes and
	// renames. Because of the lock, one temporary file is enough.
	writeLockFile, tempFile = "vault.lock", "vault.tmp"
	// writeWait is how long a writer waits for the lock. lockRetry is the interval between attempts.
	writeWait, lockRetry = time.Minute, 5 * time.Millisecond
)

// prepareDir creates the vault's directory. If the directory exists, prepareDir removes the permissions of other users.
func (v *Vault) prepareDir() error {
	if v.unavailable != nil {
		return v.unavailable
	}
	_, err := os.Stat(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(v.dir, 0o700); err != nil {
			return err
		}
		return syncDir(filepath.Dir(v.dir))
	}
	if err != nil {
		return err
	}
	repaired, err := privatefile.Protect(v.dir, true)
	if repaired {
		v.log.Warn("the vault's directory was open to other users; now it is not", "dir", v.dir)
	}
	return err
}

// replaceFile atomically replaces a file of the vault and syncs it to the disk. The caller holds the write lock. The
// file's new modification time is later than the old one, even if the clock was set back, so that Vault.Stamp changes.
func (v *Vault) replaceFile(path string, data []byte) error {
	temp := filepath.Join(v.dir, tempFile)
	if err := writePrivateFile(temp, data); err != nil {
		return err
	}
	at := time.Now()
	if before, err := os.Stat(path); err == nil && !at.After(before.ModTime()) {
		at = before.ModTime().Add(time.Millisecond)
	}
	err := os.Chtimes(temp, at, at)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp) // the error of the first failed call is returned
		return err
	}
	return syncDir(v.dir)
}

// writePrivateFile writes a file with mode 0600 and syncs it to the disk.
func writePrivateFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir syncs changed file names to the disk. On Windows it does nothing, because such changes are written through.
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

// lockFile locks a lock file of the vault. It waits until the lock is free or ctx is done.
func (v *Vault) lockFile(ctx context.Context, file string) (unlock func(), err error) {
	return v.lockFileUntil(ctx.Done(), func() error { return context.Cause(ctx) }, file)
}

// lockFileUntil locks a lock file. It waits until the lock is free; if done is closed before, it returns an error with
// the result of cause. Goroutines of one process first wait for each other, so that only one of them tries to lock the
// file.
func (v *Vault) lockFileUntil(done <-chan struct{}, cause func() error, file string) (unlock func(), err error) {
	v.mu.Lock()
	turn := v.lockTurns[file]
	if turn == nil {
		turn = make(chan struct{}, 1)
		v.lockTurns[file] = turn
	}
	v.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-done:
		return nil, cause()
	}
	lock := flock.New(filepath.Join(v.dir, file), flock.SetPermissions(0o600))
	if err := tryLockUntil(done, cause, lock); err != nil {
		<-turn
		return nil, fmt.Errorf("lock %s: %w", lock.Path(), withoutPath(err))
	}
	return sync.OnceFunc(func() {
		_ = lock.Unlock() // closing the file releases the lock
		<-turn
	}), nil
}

// tryLockUntil tries to lock a file at intervals of lockRetry until it succeeds or done is closed.
func tryLockUntil(done <-chan struct{}, cause func() error, lock *flock.Flock) error {
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		select {
		case <-done:
			return cause()
		default:
		}
		if locked, err := lock.TryLock(); locked || err != nil {
			return err
		}
		select {
		case <-done:
			return cause()
		case <-retry.C:
		}
	}
}

// errLockHeld is the error of a writer that did not get the lock within writeWait.
var errLockHeld = errors.New("another process has held the lock for too long")

// lockForWriting takes the write lock of the vault. Each process holds this lock only for a short time.
func (v *Vault) lockForWriting() (unlock func(), err error) {
	late := make(chan struct{})
	defer time.AfterFunc(writeWait, func() { close(late) }).Stop()
	return v.lockFileUntil(late, func() error { return errLockHeld }, writeLockFile)
}

// withoutPath returns the error without the path, which the caller adds.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
