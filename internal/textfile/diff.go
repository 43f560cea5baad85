package textfile

import (
	"fmt"

	"github.com/aymanbagabas/go-udiff"
)

// maxDiff is the maximum size of a diff in bytes.
const maxDiff = 16 << 10

// Diff returns the difference between before and after as a unified diff with three lines of context. name is the name
// of the file in the diff. From a diff of more than maxDiff bytes, the middle is omitted.
func Diff(name, before, after string) string {
	diff := udiff.Unified(name, name, before, after)
	if len(diff) <= maxDiff {
		return diff
	}
	head, tail := prefixOfLines(diff, maxDiff/2), suffixOfLines(diff, maxDiff/2)
	return fmt.Sprintf("%s[%d bytes elided]\n%s", head, len(diff)-len(head)-len(tail), tail)
}

// WholeDiff is like Diff, but leaves nothing out. It is for a person who decides about the difference.
func WholeDiff(name, before, after string) string { return udiff.Unified(name, name, before, after) }

// prefixOfLines returns as many whole lines at the start of a text as fit into size bytes.
func prefixOfLines(text string, size int) string {
	for size > 0 && text[size-1] != '\n' {
		size--
	}
	return text[:size]
}

// suffixOfLines returns as many whole lines at the end of a text as fit into size bytes.
func suffixOfLines(text string, size int) string {
	start := len(text) - size
	for start < len(text) && text[start-1] != '\n' {
		start++
	}
	return text[start:]
}
