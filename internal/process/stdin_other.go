//go:build !unix

package process

import "os"

// PolledStdin returns in unchanged: on this system the runtime's network poller is not used for standard input.
func PolledStdin(in, _ *os.File) *os.File { return in }
