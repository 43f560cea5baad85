package hub

import (
	"errors"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// A LockState is the state of the hub file: its content, and whether it is locked. It can be read even if the hub does
// not respond.
type LockState struct {
	// File is the path of the hub file; empty for a store that has no hub.
	File string
	// PID is the process id of the hub, or of the last hub if no hub runs. After a hub was killed, the hub file keeps
	// its process id until the next hub starts.
	PID int
	// Held reports whether a process holds the lock now, which means that it is the hub.
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
