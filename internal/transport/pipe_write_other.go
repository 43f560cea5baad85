//go:build !unix

package transport

import "os"

// NonblockingPipeWriter returns nil: this system does not tell whether a pipe has room.
func NonblockingPipeWriter(*os.File) func(message []byte) bool { return nil }
