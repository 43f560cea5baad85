//go:build !unix

package mcptest

import "os/exec"

// startInOwnSession does nothing: this system does not have process sessions.
func startInOwnSession(*exec.Cmd) {}
