//go:build !linux

package hub

// releaseProgramPages does nothing: only Linux has this advice.
func releaseProgramPages() {}
