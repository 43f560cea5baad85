//go:build !linux

package admin

// findFileUsers returns nil, because this system does not list the processes that have a file open.
func findFileUsers(string) []fileUser { return nil }
