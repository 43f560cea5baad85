//go:build linux || darwin

package config

import (
	"os"
	"syscall"
)

// A fileIdentity distinguishes a file from all other files, and a changed file from its earlier state.
type fileIdentity struct {
	device, inode uint64
	size          int64
	modified      syscall.Timespec
	changed       syscall.Timespec
}

// identifyFile returns the identity of a file; the second result is false if the system provides no identity.
func identifyFile(info os.FileInfo) (fileIdentity, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileIdentity{}, false
	}
	modified, changed := fileTimes(s)
	return fileIdentity{uint64(s.Dev), s.Ino, s.Size, modified, changed}, true
}
