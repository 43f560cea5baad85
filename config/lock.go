package config

import (
	"io/fs"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/config/disk"
)

// LockName is the name that a lockfile has where nothing names it otherwise.
const LockName = "drawbridge.lock"

// LockPlace says where the lockfile is: where the settings name one, which then has to be there, or else beside the person's own
// drawbridge.toml; empty where there is no place for one. The error is as for Load.
func LockPlace(o Options, s Settings) (path string, named bool, err error) {
	if s.LockFile != "" {
		return s.LockFile, true, nil
	}
	l, err := newLoader(o)
	if err != nil {
		return "", false, err
	}
	own, ok := l.ownSettings()
	if !ok {
		return "", false, nil
	}
	return filepath.Join(filepath.Dir(own.path), LockName), false, nil
}

// ReadLock reads a lockfile. The error is fs.ErrNotExist where there is none; what is no regular file is not read, since a pipe
// would have everybody wait.
func ReadLock(path string) ([]byte, error) {
	held, _, err := disk.Read(path)
	if err == nil && !held.Exists {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return held.Data, err
}

// UpdateLock changes a lockfile under the terms of Update, whatever it holds.
func UpdateLock(path string, change func([]byte) ([]byte, error)) error {
	return disk.Rewrite(path, func(before disk.Version) (disk.Version, error) {
		data, err := change(before.Held())
		return disk.Version{Data: data, Exists: err == nil}, err
	})
}
