package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// FindProgram returns the path of the program that a child process would run for command. dir and env are the directory
// and the environment of the child process. Extensions such as .cmd are tried in the order of PATHEXT.
func FindProgram(command, dir string, env []string) (string, error) {
	if command == "" {
		return "", errors.New("start: the command is empty")
	}
	if strings.ContainsAny(command, `/\`) {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("start %s: file not found: %w", command, fs.ErrNotExist)
		}
		return filepath.Abs(found)
	}
	search := lookupVariable(env, "PATH")
	for _, d := range filepath.SplitList(search) {
		if path, err := exec.LookPath(filepath.Join(d, command)); err == nil && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", &CommandNotFoundError{command, search}
}
