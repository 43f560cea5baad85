package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// executablePath returns the absolute path with which this program can be started again. It prefers the path that was
// typed, because a link such as /usr/local/bin/drawbridge stays valid when its target is replaced.
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

// isTemporaryBinary reports whether "go run" or "go test" built the program and will delete it.
func isTemporaryBinary(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/go-build")
}
