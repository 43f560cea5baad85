//go:build unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FindProgram returns the path of the program that a child process would run for command. dir and env are the directory
// and the environment of the child process.
func FindProgram(command, dir string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := checkExecutable(path); err != nil {
			return "", fmt.Errorf("start %s: %w", command, err)
		}
		return filepath.Abs(path)
	}
	if command == "" {
		return "", errors.New("start: the command is empty")
	}
	search := lookupVariable(env, "PATH")
	var denied error
	for _, d := range filepath.SplitList(search) {
		path := filepath.Join(d, command)
		if !filepath.IsAbs(path) {
			continue // relative entries are skipped: they depend on the directory
		}
		switch err := checkExecutable(path); {
		case err == nil:
			return path, nil
		case errors.Is(err, fs.ErrPermission):
			denied = fmt.Errorf("start %s: %s: %w", command, path, err)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &CommandNotFoundError{command, search}
}

// checkExecutable returns an error if the file at path cannot be run, otherwise nil.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file not found: %w", fs.ErrNotExist)
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory")
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("the file is not executable: %w", fs.ErrPermission)
	}
	return nil
}
