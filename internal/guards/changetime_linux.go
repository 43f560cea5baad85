//go:build linux

package guards

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns the time of the last change of a file or of its name.
func changeTime(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		if c := time.Unix(s.Ctim.Unix()); c.After(info.ModTime()) {
			return c
		}
	}
	return info.ModTime()
}
