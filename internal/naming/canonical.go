package naming

import "strings"

// Canonical returns the form of a tool name that is used to compare names of Drawbridge's own tools. It is in lower
// case, without _ and -, and without surrounding white space.
func Canonical(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(strings.TrimSpace(name)))
}
