package drawbridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
)

func TestCancelledFor(t *testing.T) {
	for reason, want := range map[string]string{
		"":                       "cancelled by the caller",
		"too slow":               "too slow",
		strings.Repeat("é", 200): strings.Repeat("é", 200),
		strings.Repeat("é", 201): strings.Repeat("é", 200),
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(drawbridge.NewCancellation(reason))
		cause := context.Cause(ctx)
		if got := cause.Error(); got != want {
			t.Errorf("cause %q of %d characters, want %q", got, utf8.RuneCountInString(got), want)
		}
		if !errors.Is(cause, context.Canceled) {
			t.Errorf("%q is not a cancellation", cause)
		}
	}
}
