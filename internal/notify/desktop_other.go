//go:build !(linux || freebsd || netbsd || openbsd || dragonfly || darwin)

package notify

import (
	"context"
	"errors"
)

// showOnDesktop returns an error: there are no notifications on this system yet.
func showOnDesktop(context.Context, string, string) error { return errors.ErrUnsupported }
