//go:build !unix

package stdin

import "os"

// Polled gives the input as it is, where there is no better way to read it.
func Polled(in, _ *os.File) *os.File { return in }
