// Package privatefile checks the files that determine which programs Drawbridge starts and what it trusts: the store,
// the vault, spools, keys and lock files.
//
// Protect returns an error for a file that is a symbolic link or belongs to another user. Otherwise another user could
// choose the content that is read, or the file that is overwritten. It also removes the permissions of other users.
// Check performs the same checks and changes nothing. On Windows, only links and special files are detected.
package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// An InsecureError describes why a file or directory cannot be trusted.
type InsecureError struct {
	Path, Reason string
	// Fix is a command or a step that makes the path secure.
	Fix string
	// Repairable reports whether Protect can make the path secure.
	Repairable bool
}

// Error returns the path and the reason.
func (e *InsecureError) Error() string { return fmt.Sprintf("%s %s", e.Path, e.Reason) }

// Check returns an *InsecureError if path is not a private regular file or, if dir is true, not a private directory. A
// path that does not exist is secure. Any other error means that the path cannot be examined.
//
// A directory may be a symbolic link, because people move their state to other disks.
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

// Protect is like Check, but removes the permissions of other users if this makes the path secure. repaired reports
// whether it removed permissions.
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
