//go:build !unix

package fakemcp

import "os/exec"

// ownSession does nothing: there are no sessions of processes here.
func ownSession(*exec.Cmd) {}
