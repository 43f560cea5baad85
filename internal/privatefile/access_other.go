//go:build !unix

package privatefile

import "io/fs"

// checkAccess checks nothing: the permissions of Windows are in access lists, which a user's profile directory has.
func checkAccess(string, fs.FileInfo) error { return nil }
