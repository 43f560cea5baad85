//go:build !linux

package guards

import (
	"io/fs"
	"time"
)

// changeTime returns the time of the last change of a file.
func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
