//go:build !linux

package sandbox

import (
	"os"
	"os/exec"
)

// prepareCommand does nothing: the worker ends when its standard input does.
func prepareCommand(*exec.Cmd) {}

func programPath() (string, error) { return os.Executable() }

func closeInherited() error { return nil }
