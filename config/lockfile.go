package config

import (
	"io/fs"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// LockfileName is the default name of a lockfile.
const LockfileName = "drawbridge.lock"

// LockfilePath returns the lockfile's path: the one in the settings, which must exist, or else the one beside the
// person's own drawbridge.toml; empty if that location is unknown. The error is as for Load.
func LockfilePath(o Options, s Settings) (path string, named bool, err error) {
	if s.LockFile != "" {
		return s.LockFile, true, nil
	}
	l, err := newLoader(o)
	if err != nil {
		return "", false, err
	}
	own, ok := l.userSettingsSource()
	if !ok {
		return "", false, nil
	}
	return filepath.Join(filepath.Dir(own.path), LockfileName), false, nil
}

// ReadLockfile reads a lockfile. The error is fs.ErrNotExist if it does not exist. Only a regular file is read, since a
// pipe would block.
func ReadLockfile(path string) ([]byte, error) {
	held, _, err := configfile.ReadFile(path)
	if err == nil && !held.Exists {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return held.Data, err
}

// UpdateLockfile changes a lockfile as UpdateFile does, whatever its content.
func UpdateLockfile(path string, change func([]byte) ([]byte, error)) error {
	return configfile.RewriteFile(path, func(before configfile.FileState) (configfile.FileState, error) {
		data, err := change(before.Content())
		return configfile.FileState{Data: data, Exists: err == nil}, err
	})
}
