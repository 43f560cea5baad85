//go:build unix

package agent

import (
	"os"
	"syscall"
)

// noFollow is the flag of os.OpenFile that makes opening a symbolic link an error.
const noFollow = syscall.O_NOFOLLOW

// syncDir writes the names of a directory's files to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closed := d.Close(); err == nil {
		err = closed
	}
	return err
}
