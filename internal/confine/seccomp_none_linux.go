//go:build !amd64 && !arm64

package confine

import "errors"

// canFilterCalls says that no filter is known here for this processor.
func canFilterCalls() bool { return false }

func installFilter(bool, bool) error { return errors.ErrUnsupported }
