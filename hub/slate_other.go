//go:build !unix

package hub

import (
	"io"
	"os"
)

// A slate is memory that two processes share, which is not done here: what client and hub say passes through the shim.
type slate struct{}

func newSlate() (*slate, *os.File, error)       { return nil, nil, errNoFiles }
func openSlate(*os.File) (*slate, error)        { return nil, errNoFiles }
func (*slate) close()                           {}
func (*slate) closed() bool                     { return true }
func (*slate) put(byte, []byte) (ok, full bool) { return false, false }
func (*slate) drain(func(byte, []byte))         {}
func (*slate) load([]byte)                      {}
func (*slate) fill(io.Reader) error             { return errNoFiles }
func (*slate) line() ([]byte, bool)             { return nil, false }
func (*slate) take(int)                         {}
func (*slate) place() uint64                    { return 0 }
func (*slate) rest(uint64) []byte               { return nil }

var errInboxFull = errNoFiles
