//go:build !linux && !darwin && !windows

package terminal

import "errors"

// forget cannot drop here what was typed and not read yet.
func forget(int) error { return errors.ErrUnsupported }
