//go:build !linux && !darwin && !windows

package cli

import "errors"

// flushInput returns an error: this system cannot drop input that was not read yet.
func flushInput(int) error { return errors.ErrUnsupported }
