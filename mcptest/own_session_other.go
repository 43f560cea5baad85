//go:build !unix

package mcptest

import "os/exec"

// startInOwnSession does nothing: there are no sessions of processes here.
func startInOwnSession(*exec.Cmd) {}
