//go:build linux || darwin

package facts

import (
	"os"
	"syscall"
)

// An identity tells a file, as it is now, from all others, and from what it was before a change.
type identity struct {
	device, inode uint64
	size          int64
	modified      syscall.Timespec
	changed       syscall.Timespec
}

// identify gives the identity of a file; false where it has none.
func identify(info os.FileInfo) (identity, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	modified, changed := times(s)
	return identity{uint64(s.Dev), s.Ino, s.Size, modified, changed}, true
}
