package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A DirError is the error of a program that was not started because its directory cannot be used.
type DirError struct {
	Dir string
	Why string
}

// Error names the directory.
func (e *DirError) Error() string { return fmt.Sprintf("its directory %s %s", e.Dir, e.Why) }

// A CommandNotFoundError is the error of a command that no directory of PATH has.
type CommandNotFoundError struct {
	Command string
	// Path is the list of directories; the text leaves it out.
	Path string
}

// Error names the command.
func (e *CommandNotFoundError) Error() string {
	return fmt.Sprintf("command %q not found on PATH", e.Command)
}

// Unwrap returns fs.ErrNotExist.
func (e *CommandNotFoundError) Unwrap() error { return fs.ErrNotExist }

// StartAdvice returns what a person can do about a program that was not started, or "" if that is unknown.
func StartAdvice(err error) string {
	if _, ok := errors.AsType[*DirError](err); ok {
		return `make it, or name another as "cwd"`
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "install it, or configure its full path"
	}
	return ""
}

// checkDir returns why a program cannot start in a directory. The system's own error would name the program and not the
// directory.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &DirError{dir, "does not exist"}
	case errors.As(err, &path):
		return &DirError{dir, "cannot be read: " + path.Err.Error()}
	case err == nil && !info.IsDir():
		return &DirError{dir, "is not a directory"}
	}
	return nil
}
