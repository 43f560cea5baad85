//go:build unix

package cards

import (
	"io/fs"
	"os"
	"syscall"
)

// openWithoutWaiting is the flag that prevents blocking when a FIFO is opened.
const openWithoutWaiting = syscall.O_NONBLOCK

// keepOwner restores the owner of a replaced file. Only a privileged process can replace a file of another user.
func keepOwner(path string, before fs.FileInfo) error {
	now, err := os.Lstat(path)
	if err != nil {
		return err
	}
	old, ok1 := before.Sys().(*syscall.Stat_t)
	own, ok2 := now.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || old.Uid == own.Uid && old.Gid == own.Gid {
		return nil
	}
	return os.Lchown(path, int(old.Uid), int(old.Gid))
}
