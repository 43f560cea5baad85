package confine

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// keptCapabilities returns the Linux capabilities that programs which run as root may need for their own files. All
// others are dropped, since some of them circumvent the confinement. For example, one permits reading the memory of any
// process in spite of Landlock.
func keptCapabilities() []uintptr {
	return []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETGID,
		unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE}
}

// dropCapabilities drops all capabilities except keptCapabilities, for this thread and the program that it executes.
// For users other than root, failures are ignored. For root, it returns an error if a capability cannot be dropped.
func dropCapabilities() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // fails on an old kernel
	for right := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains(keptCapabilities(), right) {
			continue
		}
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, right, 0, 0, 0)
		if err != nil || has == 0 {
			continue // the kernel does not know it, or it is already dropped
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return fmt.Errorf("drop the capabilities of root: %w", err)
		}
	}
	return nil
}
