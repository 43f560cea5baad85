//go:build !unix

package hub

import (
	"io"
	"os"
)

// A sharedRing is memory that a shim and the hub share. This system does not support it, so the shim itself passes all
// messages.
type sharedRing struct{}

func newSharedRing() (*sharedRing, *os.File, error)        { return nil, nil, errNoFilePassing }
func openSharedRing(*os.File) (*sharedRing, error)         { return nil, errNoFilePassing }
func (*sharedRing) close()                                 {}
func (*sharedRing) closed() bool                           { return true }
func (*sharedRing) putRecord(byte, []byte) (ok, full bool) { return false, false }
func (*sharedRing) readRecords(func(byte, []byte))         {}
func (*sharedRing) loadInbox([]byte)                       {}
func (*sharedRing) fillInbox(io.Reader) error              { return errNoFilePassing }
func (*sharedRing) nextLine() ([]byte, bool)               { return nil, false }
func (*sharedRing) consumeInbox(int)                       {}
func (*sharedRing) inboxOffset() uint64                    { return 0 }
func (*sharedRing) unconsumedInbox(uint64) []byte          { return nil }

var errInboxFull = errNoFilePassing
