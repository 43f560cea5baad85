package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
)

// sameHint says whether two hints say the same. Nil has no say.
func sameHint(a, b *drawbridge.CacheHint) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// stricterHint joins two hints: the shorter time, the narrower scope. Nil has no say.
func stricterHint(a, b *drawbridge.CacheHint) *drawbridge.CacheHint {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &drawbridge.CacheHint{TTL: min(a.TTL, b.TTL), Public: a.Public && b.Public}
}
