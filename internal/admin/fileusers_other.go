//go:build !linux

package admin

// findFileUsers returns nothing: this system does not name the processes that have a file open.
func findFileUsers(string) []fileUser { return nil }
