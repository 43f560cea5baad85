//go:build unix && !(linux && (amd64 || arm64))

package process

import "context"

// canSupervise returns false: the supervisor is for Linux on amd64 and arm64.
func canSupervise() bool { return false }

func launchSupervised(context.Context, launch) (*processTree, int, error) {
	return nil, 0, errNoSupervisor
}
