//go:build unix

package mcptest_test

import (
	"syscall"
	"testing"
)

// ignore-stdin answers after a SIGTERM as before.
func TestIgnoreStdinIgnoresSIGTERM(t *testing.T) {
	p := start(t, "ignore-stdin")
	p.echo()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.echo()
}
