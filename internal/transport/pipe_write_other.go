//go:build !unix

package transport

import (
	"io"
	"os"
)

// NonblockingPipeWriter returns nil: this system does not report whether a pipe has space.
func NonblockingPipeWriter(*os.File) func(message []byte) bool { return nil }

// NewPipeReader returns f.
func NewPipeReader(f *os.File) io.Reader { return f }
