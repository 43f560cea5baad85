//go:build !linux && !darwin && !windows

package term

import "errors"

// flushInput cannot drop here what was typed and not read yet.
func flushInput(int) error { return errors.ErrUnsupported }
