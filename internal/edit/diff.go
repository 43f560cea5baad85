package edit

import (
	"fmt"

	"github.com/aymanbagabas/go-udiff"
)

// maxDiff is the maximum size of a diff in bytes.
const maxDiff = 16 << 10

// Diff returns the changes of a file as a unified diff with three lines of context. If the diff is longer than maxDiff,
// Diff returns its beginning and its end.
func Diff(name, before, after string) string {
	diff := udiff.Unified(name, name, before, after)
	if len(diff) <= maxDiff {
		return diff
	}
	head, tail := prefixOfLines(diff, maxDiff/2), suffixOfLines(diff, maxDiff/2)
	return fmt.Sprintf("%s[%d bytes elided]\n%s", head, len(diff)-len(head)-len(tail), tail)
}

// prefixOfLines returns the whole lines at the start of a text that fit into size bytes.
func prefixOfLines(text string, size int) string {
	for size > 0 && text[size-1] != '\n' {
		size--
	}
	return text[:size]
}

// suffixOfLines returns the whole lines at the end of a text that fit into size bytes.
func suffixOfLines(text string, size int) string {
	start := len(text) - size
	for start < len(text) && text[start-1] != '\n' {
		start++
	}
	return text[start:]
}
