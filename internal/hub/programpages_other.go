//go:build !linux

package hub

// releaseProgramPages does nothing: only Linux supports releasing program pages.
func releaseProgramPages() {}
