//go:build !linux

package hub

// releaseTextPages is advice that only Linux takes.
func releaseTextPages() {}
