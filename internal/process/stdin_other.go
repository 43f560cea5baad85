//go:build !unix

package process

import "os"

// PolledStdin returns in as it is: this system has no better way to read it.
func PolledStdin(in, _ *os.File) *os.File { return in }
