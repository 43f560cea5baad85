package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// executablePath is the absolute path by which this program is to be started again: as it was typed where that is this
// very program, since a link such as /usr/local/bin/drawbridge outlives the version that it leads to.
func executablePath() string {
	real, err := os.Executable()
	if err != nil {
		return ""
	}
	typed := os.Args[0]
	if !strings.ContainsRune(typed, filepath.Separator) {
		if typed, err = exec.LookPath(typed); err != nil {
			return real
		}
	}
	if typed, err = filepath.Abs(typed); err != nil || !sameFile(typed, real) {
		return real
	}
	return typed
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// isTemporaryBinary reports whether a program's path is one that "go run" or "go test" made and will take away.
func isTemporaryBinary(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/go-build")
}
