//go:build !(linux || freebsd || netbsd || openbsd || dragonfly || darwin)

package notify

import (
	"context"
	"errors"
)

// showOnDesktop returns an error: desktop notifications are not supported on this system.
func showOnDesktop(context.Context, string, string) error { return errors.ErrUnsupported }
