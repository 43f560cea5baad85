package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
)

// sameHint reports whether two hints are equal.
func sameHint(a, b *drawbridge.CacheHint) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// stricterHint returns the combination of two hints: the shorter time and the narrower scope. A nil hint has no limits.
func stricterHint(a, b *drawbridge.CacheHint) *drawbridge.CacheHint {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &drawbridge.CacheHint{TTL: min(a.TTL, b.TTL), Public: a.Public && b.Public}
}
