package config

import (
	"io/fs"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// LockfileName is the default name of the lockfile, which the command "drawbridge lock write" writes.
const LockfileName = "drawbridge.lock"

// LockfilePath returns the path of the lockfile. If the settings name a lockfile, named is true and the file must
// exist. Otherwise the path is beside the user-level drawbridge.toml, or empty if that location is unknown. The error
// is that of Load.
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

// ReadLockfile returns the content of a lockfile. If the file does not exist, the error wraps fs.ErrNotExist. Only a
// regular file is read, because reading a pipe may block.
func ReadLockfile(path string) ([]byte, error) {
	held, _, err := configfile.ReadFile(path)
	if err == nil && !held.Exists {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return held.Data, err
}

// UpdateLockfile changes a lockfile as UpdateFile does, but does not check the syntax of its content.
func UpdateLockfile(path string, change func([]byte) ([]byte, error)) error {
	return configfile.RewriteFile(path, func(before configfile.FileState) (configfile.FileState, error) {
		data, err := change(before.Content())
		return configfile.FileState{Data: data, Exists: err == nil}, err
	})
}
