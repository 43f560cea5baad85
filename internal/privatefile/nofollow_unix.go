//go:build unix

package privatefile

import "syscall"

// NoFollow is the flag with which opening a symbolic link is an error; 0 where the system has none.
const NoFollow = syscall.O_NOFOLLOW
