//go:build !unix

package process

import "os"

// PolledStdin gives the input as it is, where there is no better way to read it.
func PolledStdin(in, _ *os.File) *os.File { return in }
