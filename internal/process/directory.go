package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A DirError is for a program that is not started since the directory that it is to start in cannot be had.
type DirError struct {
	Dir string
	Why string
}

// Error names the directory.
func (e *DirError) Error() string { return fmt.Sprintf("its directory %s %s", e.Dir, e.Why) }

// StartAdvice says what a person can do about a program that was not started; empty where that is not known.
func StartAdvice(err error) string {
	if _, ok := errors.AsType[*DirError](err); ok {
		return `make it, or name another as "cwd"`
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "install it, or give its full path"
	}
	return ""
}

// checkDir says why a program cannot start in a directory: the system would name the program, and not what is missing.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &DirError{dir, "is not there"}
	case errors.As(err, &path):
		return &DirError{dir, "cannot be looked at: " + path.Err.Error()}
	case err == nil && !info.IsDir():
		return &DirError{dir, "is no directory"}
	}
	return nil
}
