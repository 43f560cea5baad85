//go:build !unix

package process

import "os"

// PolledStdin returns in unchanged: on this system there is no better way to read it.
func PolledStdin(in, _ *os.File) *os.File { return in }
