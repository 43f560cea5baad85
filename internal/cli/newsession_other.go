//go:build !unix

package cli

import "os/exec"

// startNewSession does nothing on this system.
func startNewSession(*exec.Cmd) {}
