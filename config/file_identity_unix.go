//go:build linux || darwin

package config

import (
	"os"
	"syscall"
)

// A fileIdentity distinguishes a file from all others, and from its own state before a change.
type fileIdentity struct {
	device, inode uint64
	size          int64
	modified      syscall.Timespec
	changed       syscall.Timespec
}

// identifyFile returns the identity of a file; false if it has none.
func identifyFile(info os.FileInfo) (fileIdentity, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileIdentity{}, false
	}
	modified, changed := fileTimes(s)
	return fileIdentity{uint64(s.Dev), s.Ino, s.Size, modified, changed}, true
}
