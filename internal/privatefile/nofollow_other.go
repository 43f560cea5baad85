//go:build !unix

package privatefile

// NoFollow is the flag with which opening a symbolic link is an error; 0 where the system has none.
const NoFollow = 0
