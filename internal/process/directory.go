package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A DirError reports that a program was not started because its directory cannot be used. Why completes the sentence
// "its directory ...".
type DirError struct {
	Dir string
	Why string
}

// Error returns a text with the directory and the reason.
func (e *DirError) Error() string { return fmt.Sprintf("its directory %s %s", e.Dir, e.Why) }

// A CommandNotFoundError reports that no directory of PATH contains the command.
type CommandNotFoundError struct {
	Command string
	// Path is the value of PATH that was searched. The text of Error does not contain it.
	Path string
}

// Error returns a text with the command.
func (e *CommandNotFoundError) Error() string {
	return fmt.Sprintf("command %q not found on PATH", e.Command)
}

// Unwrap returns fs.ErrNotExist.
func (e *CommandNotFoundError) Unwrap() error { return fs.ErrNotExist }

// StartAdvice returns what a person can do if a program was not started because of err, or "" if that is unknown.
func StartAdvice(err error) string {
	if _, ok := errors.AsType[*DirError](err); ok {
		return `make it, or name another as "cwd"`
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "install it, or configure its full path"
	}
	return ""
}

// checkDir returns a *DirError if a program cannot start in dir, otherwise nil. The error of the system would name the
// program and not the directory.
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
