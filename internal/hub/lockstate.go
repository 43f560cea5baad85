package hub

import (
	"errors"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// A LockState is the content and the lock of the hub file, whether the hub answers or not.
type LockState struct {
	// File is its path; empty for a store that has no hub.
	File string
	// PID is the hub's process, or was: the file of a hub that was killed stays until the next one takes it over.
	PID int
	// Held reports that a process is the hub now.
	Held bool
}

// ReadLockState returns the state of the hub file and its lock. It changes nothing.
func ReadLockState(o Options) (LockState, error) {
	s, err := newHubFinder(o)
	if err != nil || !s.shareable {
		return LockState{}, err
	}
	l := LockState{File: s.file.path}
	if _, err := os.Stat(l.File); errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	said, _ := s.file.readAddress()
	l.PID = said.PID
	lock := flock.New(l.File, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		return l, err
	}
	l.Held = !free
	return l, lock.Close()
}
