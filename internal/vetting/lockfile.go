package vetting

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A lockfile gives access to a lockfile on disk. It reads the file when the content is first needed, and again after the
// file has changed. If required is false, a missing file counts as empty.
type lockfile struct {
	path     string
	required bool

	mu       sync.Mutex
	lastInfo fs.FileInfo // nil before the first read
	pins     lockfilePins
	err      error
}

// lockfilePins is the content of a lockfile; empty if there is no lockfile.
type lockfilePins struct {
	// hash is the hash of the whole file; nil if there is no lockfile.
	hash   []byte
	byPart map[partKey]map[string]shield.Pin
}

// A partKey identifies a part of a server's listing.
type partKey struct {
	server drawbridge.ServerID
	part   string
}

func (f *lockfile) read() (lockfilePins, error) {
	if f.path == "" {
		return lockfilePins{}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) && !f.required {
		return lockfilePins{}, nil
	}
	if err != nil {
		return lockfilePins{}, lockfileFault(err, "drawbridge lock write creates it")
	}
	if f.lastInfo == nil || !os.SameFile(f.lastInfo, info) || !f.lastInfo.ModTime().Equal(info.ModTime()) ||
		f.lastInfo.Size() != info.Size() {
		f.pins, f.err = readLockfile(f.path)
		f.lastInfo = info
	}
	return f.pins, f.err
}

func readLockfile(path string) (lockfilePins, error) {
	text, err := config.ReadLockfile(path)
	if err != nil {
		return lockfilePins{}, lockfileFault(err, "")
	}
	tools, err := shield.ParseLockfile(path, text)
	if err != nil {
		return lockfilePins{}, lockfileFault(err, "correct the file; until then no server is shown")
	}
	sum := sha256.Sum256(text)
	all := lockfilePins{sum[:], map[partKey]map[string]shield.Pin{}}
	for _, t := range tools {
		place := partKey{t.Server, t.Part}
		if all.byPart[place] == nil {
			all.byPart[place] = map[string]shield.Pin{}
		}
		all.byPart[place][t.Tool] = shield.Pin{Tool: t.Tool, Definition: t.Definition,
			Hash: shield.Fingerprint(t.Definition)}
	}
	return all, nil
}

func lockfileFault(err error, next string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the lockfile", Err: err, Next: next,
	}
}

// EditLockfile changes a lockfile. change receives the tools in the file and returns the tools to write. A missing file
// counts as empty, and is created. leftOut contains the tools that cannot be stored in a lockfile. The error is that of
// shield.ParseLockfile or config.UpdateLockfile.
func EditLockfile(path string, change func(said []shield.LockedTool) []shield.LockedTool) (leftOut []shield.LockedTool,
	err error) {
	err = config.UpdateLockfile(path, func(before []byte) ([]byte, error) {
		var said []shield.LockedTool
		if before != nil {
			var err error
			if said, err = shield.ParseLockfile(path, before); err != nil {
				return nil, err
			}
		}
		var text []byte
		text, leftOut = shield.FormatLockfile(change(said))
		return text, nil
	})
	return leftOut, err
}
