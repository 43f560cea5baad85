//go:build unix

package privatefile

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// checkAccess returns an *InsecureError if another user owns the path or other users have permissions for it. The
// permissions of a directory are not checked if it belongs to root or has the sticky bit, such as /tmp.
func checkAccess(path string, info fs.FileInfo) error {
	owner, me := -1, os.Geteuid()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(st.Uid)
	}
	switch mode := info.Mode(); {
	case owner != me && owner != 0:
		return &InsecureError{Path: path, Reason: fmt.Sprintf("belongs to another user (uid %d)", owner),
			Fix: fmt.Sprintf("chown %d %s, after a look at its contents", me, strconv.Quote(path))}
	case info.IsDir() && owner == 0 && me != 0:
		return nil // a directory of the system
	case info.IsDir() && mode&fs.ModeSticky != 0, mode.Perm()&0o077 == 0:
		return nil
	case info.IsDir():
		return &InsecureError{Path: path, Reason: fmt.Sprintf("is open to other users (mode %#o)", mode.Perm()),
			Fix: "chmod 700 " + strconv.Quote(path), Repairable: true}
	default:
		return &InsecureError{Path: path, Reason: fmt.Sprintf("is open to other users (mode %#o)", mode.Perm()),
			Fix: "chmod 600 " + strconv.Quote(path), Repairable: true}
	}
}
