//go:build !amd64 && !arm64

package confine

import "errors"

// canFilterCalls returns false: Drawbridge has no filter for this processor.
func canFilterCalls() bool { return false }

func installFilter(bool, bool) error { return errors.ErrUnsupported }
