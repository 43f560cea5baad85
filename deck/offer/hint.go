package offer

import "github.com/drawbridge-mcp/drawbridge"

// SameHint says whether two hints say the same. Nil has no say.
func SameHint(a, b *drawbridge.Hint) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Stricter joins two hints: the shorter time, the narrower scope. Nil has no say.
func Stricter(a, b *drawbridge.Hint) *drawbridge.Hint {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &drawbridge.Hint{TTL: min(a.TTL, b.TTL), Public: a.Public && b.Public}
}
