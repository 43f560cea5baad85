package pins

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/shield"
)

// A lockfile is read when it is asked and was changed since.
type lockfile struct {
	path  string
	named bool

	mu   sync.Mutex
	seen fs.FileInfo // nil before it was read
	last locks
	err  error
}

// locks is what a lockfile says: nothing where there is none.
type locks struct {
	// sum names it as a whole; nil where there is none.
	sum []byte
	of  map[lockPlace]map[string]shield.Pin
}

// A lockPlace is a part of a server.
type lockPlace struct {
	server drawbridge.ServerID
	part   string
}

func (f *lockfile) read() (locks, error) {
	if f.path == "" {
		return locks{}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) && !f.named {
		return locks{}, nil
	}
	if err != nil {
		return locks{}, fault(err, "drawbridge lock write makes it")
	}
	if f.seen == nil || !os.SameFile(f.seen, info) || !f.seen.ModTime().Equal(info.ModTime()) || f.seen.Size() != info.Size() {
		f.last, f.err = readLocks(f.path)
		f.seen = info
	}
	return f.last, f.err
}

func readLocks(path string) (locks, error) {
	text, err := config.ReadLock(path)
	if err != nil {
		return locks{}, fault(err, "")
	}
	tools, err := shield.ReadLock(path, text)
	if err != nil {
		return locks{}, fault(err, "mend it; no server is shown before that")
	}
	sum := sha256.Sum256(text)
	all := locks{sum[:], map[lockPlace]map[string]shield.Pin{}}
	for _, t := range tools {
		place := lockPlace{t.Server, t.Part}
		if all.of[place] == nil {
			all.of[place] = map[string]shield.Pin{}
		}
		all.of[place][t.Tool] = shield.Pin{Tool: t.Tool, Definition: t.Definition, Hash: shield.Fingerprint(t.Definition)}
	}
	return all, nil
}

func fault(err error, next string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the lockfile", Err: err, Next: next,
	}
}

// Lock changes a lockfile: change is given what it says, and says what it shall. One that is not there says nothing, and is made.
// What cannot be written to a lockfile is given back. The error is that of shield.ReadLock, or of config.UpdateLock.
func Lock(path string, change func(said []shield.Locked) []shield.Locked) (leftOut []shield.Locked, err error) {
	err = config.UpdateLock(path, func(before []byte) ([]byte, error) {
		var said []shield.Locked
		if before != nil {
			var err error
			if said, err = shield.ReadLock(path, before); err != nil {
				return nil, err
			}
		}
		var text []byte
		text, leftOut = shield.LockText(change(said))
		return text, nil
	})
	return leftOut, err
}
