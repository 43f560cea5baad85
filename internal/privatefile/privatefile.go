// Package privatefile guards the files that decide what Drawbridge starts and what it trusts: the store, the vault,
// spools, keys and lock files.
//
// Protect refuses a file that is a symbolic link or that belongs to another user, since another user then chooses
// what is read, or which file is overwritten. It takes away the permissions of other users. Check reports
// the same and changes nothing. On Windows only links and special files are found.
package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// An InsecureError is the reason why a file or directory cannot be trusted.
type InsecureError struct {
	Path, Reason string
	// Fix is a command or step that makes the path secure.
	Fix string
	// Repairable reports whether Protect mends it.
	Repairable bool
}

// Error names the path and the reason.
func (e *InsecureError) Error() string { return fmt.Sprintf("%s %s", e.Path, e.Reason) }

// Check returns an *InsecureError if path is not a private regular file or, for dir, a private directory. A path that
// does not exist is secure. Another error means that the path cannot be examined.
//
// A directory may be a symbolic link: people keep their state on other disks.
func Check(path string, dir bool) error {
	look := os.Lstat
	if dir {
		look = os.Stat
	}
	info, err := look(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return &InsecureError{Path: path, Reason: "is a symbolic link",
			Fix: "name the file that it leads to, or remove the link"}
	case dir && !info.IsDir():
		return &InsecureError{Path: path, Reason: "is not a directory", Fix: "move it away"}
	case !dir && !info.Mode().IsRegular():
		return &InsecureError{Path: path, Reason: "is not a regular file", Fix: "move it away"}
	}
	return checkAccess(path, info)
}

// Protect does what Check does, and takes away the permissions of other users where that mends the path. It reports
// whether it did.
func Protect(path string, dir bool) (repaired bool, err error) {
	err = Check(path, dir)
	insecure, ok := errors.AsType[*InsecureError](err)
	if !ok || !insecure.Repairable {
		return false, err
	}
	mode := fs.FileMode(0o600)
	if dir {
		mode = 0o700
	}
	if err := os.Chmod(path, mode); err != nil {
		return false, fmt.Errorf("%w, and that cannot be changed: %w", insecure, err)
	}
	return true, nil
}
