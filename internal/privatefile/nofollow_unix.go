//go:build unix

package privatefile

import "syscall"

// NoFollow is the flag of os.OpenFile that makes opening a symbolic link an error. It is 0 if the system has no such
// flag.
const NoFollow = syscall.O_NOFOLLOW
