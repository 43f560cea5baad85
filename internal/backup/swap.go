package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"
	"github.com/gofrs/flock"
)

const (
	lockFile = "lock"
	// planFile contains the moves of a swap after Commit wrote them. A process that finds the file carries out the
	// moves.
	planFile = "plan.json"
	// unpackDir is the name of the directory for the new files, within the swap's directory.
	unpackDir = "parts"
	// recoverWait is how long Recover waits for the lock of the swap. lockRetry is the interval between attempts.
	recoverWait, lockRetry = 30 * time.Second, 5 * time.Millisecond
)

// A Move moves the file or directory From to the path To. If a file or directory exists at To, it is first moved to the
// path Aside.
type Move struct {
	// From is the path of the new file or directory. If it is empty, the file or directory at To is moved to Aside and
	// not replaced.
	From  string `json:"from,omitempty"`
	To    string `json:"to"`
	Aside string `json:"aside"`
	// MovesAside reports whether To existed when the move was planned.
	MovesAside bool `json:"moves_aside"`
}

// A Swap replaces several files and directories together. Its directory contains the new files and a lock. Before
// Commit, nothing is replaced. Commit first writes a plan of all moves. After that, everything is replaced, either by
// this process or by the next process that calls Recover.
type Swap struct {
	dir  string
	lock *flock.Flock
	// step is called before each change of the file system in Commit; tests interrupt the swap there.
	step func(what string) error
}

// ErrBusy reports that another process is replacing the files.
var ErrBusy = errors.New("another process restores a backup here")

// Begin begins a swap in the directory dir, and creates dir if it is missing. dir must be on the same file system as
// the files to replace. If dir contains an earlier swap that was interrupted after its plan was written, Begin first
// completes it. If it was interrupted before, Begin removes its new files. If another process uses the swap in dir, the
// error is ErrBusy.
func Begin(dir string) (*Swap, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := privatefile.Protect(dir, true); err != nil {
		return nil, err
	}
	s := &Swap{dir: dir, lock: newLock(dir), step: func(string) error { return nil }}
	locked, err := s.lock.TryLock()
	if err == nil && !locked {
		err = ErrBusy
	}
	if err == nil {
		err = s.finish()
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(s.PartsDir()), os.Mkdir(s.PartsDir(), 0o700))
	}
	if err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

func newLock(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600),
		flock.SetFlag(os.O_CREATE|os.O_RDWR|privatefile.NoFollow))
}

// PartsDir returns the path of the directory for the new files.
func (s *Swap) PartsDir() string { return filepath.Join(s.dir, unpackDir) }

// Commit carries out the moves, and returns them with Aside and MovesAside set. A relative From is a path in PartsDir.
// Aside is To followed by suffix; if this path exists, a number is appended.
func (s *Swap) Commit(moves []Move, suffix string) ([]Move, error) {
	planned := make([]Move, len(moves))
	for i, m := range moves {
		if m.From != "" && !filepath.IsAbs(m.From) {
			m.From = filepath.Join(s.PartsDir(), m.From)
		}
		if _, err := os.Lstat(m.To); err == nil {
			m.MovesAside, m.Aside = true, freeName(m.To+suffix)
		}
		planned[i] = m
	}
	text, err := json.Marshal(planned)
	if err != nil {
		return nil, err
	}
	if err := s.step("plan"); err != nil {
		return nil, err
	}
	temp := filepath.Join(s.dir, planFile+".tmp")
	if err := writeSynced(temp, text); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, filepath.Join(s.dir, planFile)); err != nil {
		return nil, err
	}
	if err := syncDir(s.dir); err != nil {
		return nil, err
	}
	return planned, s.finish()
}

// freeName returns a path at which no file exists: name, or name followed by a number.
func freeName(name string) string {
	free := name
	for n := 2; ; n++ {
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// finish carries out the moves in planFile, and removes planFile. It does nothing if planFile does not exist. A move
// that was already made is not repeated.
func (s *Swap) finish() error {
	text, err := os.ReadFile(filepath.Join(s.dir, planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var moves []Move
	if err == nil {
		err = json.Unmarshal(text, &moves)
	}
	if err != nil {
		return fmt.Errorf("read the plan of an interrupted restore: %w", err)
	}
	for _, m := range moves {
		if err := s.carryOut(m); err != nil {
			return fmt.Errorf("put %s in place: %w", m.To, err)
		}
	}
	if err := s.step("end"); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.dir, planFile)); err != nil {
		return err
	}
	return syncDir(s.dir)
}

func (s *Swap) carryOut(m Move) error {
	if _, err := os.Lstat(m.Aside); m.MovesAside && errors.Is(err, fs.ErrNotExist) {
		if err := s.step("aside " + m.To); err != nil {
			return err
		}
		if err := os.Rename(m.To, m.Aside); err != nil {
			return err
		}
	}
	if m.From == "" {
		return syncDir(filepath.Dir(m.To))
	}
	if _, err := os.Lstat(m.From); err == nil {
		if err := s.step("put " + m.To); err != nil {
			return err
		}
		if err := os.Rename(m.From, m.To); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(m.To))
}

// Close ends the swap and removes its directory. If Commit failed after it wrote the plan, Close does not remove the
// directory, so that Recover can complete the swap.
func (s *Swap) Close() error {
	if _, err := os.Lstat(filepath.Join(s.dir, planFile)); err == nil {
		return s.lock.Close() // Commit failed, and Recover will finish the moves
	}
	// The lock is released last, so that a process that waits for it then finds nothing to do.
	return errors.Join(os.RemoveAll(s.PartsDir()), os.RemoveAll(s.dir), s.lock.Close())
}

// Recover waits until no other process uses the swap in dir. Then it completes a swap whose plan was written, or
// removes the new files of a swap without a plan. If dir does not exist, Recover does nothing.
func Recover(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := privatefile.Check(dir, true); err != nil {
		return err
	}
	s := &Swap{dir: dir, lock: newLock(dir), step: func(string) error { return nil }}
	if err := s.waitForLock(); errors.Is(err, fs.ErrNotExist) { // the other process has ended the swap
		return s.lock.Close()
	} else if err != nil {
		return errors.Join(fmt.Errorf("wait for the end of a restore: %w", err), s.lock.Close())
	}
	if err := s.finish(); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	return s.Close()
}

// waitForLock takes the lock of the swap. It returns ErrBusy if it does not get the lock within recoverWait.
func (s *Swap) waitForLock() error {
	limit := time.NewTimer(recoverWait)
	defer limit.Stop()
	for {
		if locked, err := s.lock.TryLock(); locked || err != nil {
			return err
		}
		select {
		case <-limit.C:
			return ErrBusy
		case <-time.After(lockRetry):
		}
	}
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|privatefile.NoFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir syncs changed file names to the disk. On Windows it does nothing, because syncing a directory is neither
// possible nor needed there.
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
