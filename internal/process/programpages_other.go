//go:build !linux

package process

// ReleaseProgramPages does nothing: only Linux supports releasing program pages.
func ReleaseProgramPages() {}

// ProgramPageReleaser returns a function that does nothing.
func ProgramPageReleaser() (release func()) { return func() {} }
