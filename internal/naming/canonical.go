package naming

import "strings"

// Canonical returns the form in which names of Drawbridge's own tools are compared: without _ and -, without regard to
// case.
func Canonical(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(strings.TrimSpace(name)))
}
