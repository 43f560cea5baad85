package confine

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// keptCapabilities are the capabilities that root's programs may need for their own files. The others lead out of the
// confinement: some permit reading the memory of any process, in spite of Landlock.
func keptCapabilities() []uintptr {
	return []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETGID,
		unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE}
}

// dropCapabilities drops the other capabilities of root for this thread and its program. It does nothing for other
// users. It returns an error if root cannot drop them.
func dropCapabilities() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // an old kernel has none
	for right := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains(keptCapabilities(), right) {
			continue
		}
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, right, 0, 0, 0)
		if err != nil || has == 0 {
			continue // the kernel does not know it, or it is gone
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return fmt.Errorf("drop the capabilities of root: %w", err)
		}
	}
	return nil
}
