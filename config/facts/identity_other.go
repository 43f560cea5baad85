//go:build !linux && !darwin

package facts

import "os"

// An identity is not known here: each file is read anew.
type identity struct{}

func identify(os.FileInfo) (identity, bool) { return identity{}, false }
