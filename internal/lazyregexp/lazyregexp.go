// Package lazyregexp compiles regular expressions on first use. A package-level regexp.MustCompile would slow down the
// start of every process, and most processes use few of the program's expressions.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. The first call compiles the expression, and panics if it
// is invalid. The function is safe for concurrent use.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
