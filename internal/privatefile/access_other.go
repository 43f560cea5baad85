//go:build !unix

package privatefile

import "io/fs"

// checkAccess does nothing. On Windows, permissions are in access control lists, which protect a user's profile
// directory.
func checkAccess(string, fs.FileInfo) error { return nil }
