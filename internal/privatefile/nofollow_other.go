//go:build !unix

package privatefile

// NoFollow is the flag of os.OpenFile that makes opening a symbolic link an error. It is 0 if the system has no such
// flag.
const NoFollow = 0
