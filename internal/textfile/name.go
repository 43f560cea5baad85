package textfile

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// CompileName returns a function that reports whether the name of a file matches the query; case is ignored. If the
// query contains "*", "?" or "[", it is a glob that must match the whole name. Otherwise the name must contain the
// query. If the query contains a slash, the whole path is compared with it instead of the name. In a glob, "**" matches
// any number of directories. The error reports an invalid glob.
func CompileName(query string) (matches func(File) bool, err error) {
	query = strings.ToLower(strings.TrimPrefix(query, "./"))
	subject := func(f File) string { return strings.ToLower(path.Base(f.Path)) }
	if strings.Contains(query, "/") {
		subject = func(f File) string { return strings.ToLower(f.Path) }
	}
	if !strings.ContainsAny(query, "*?[") {
		return func(f File) bool { return strings.Contains(subject(f), query) }, nil
	}
	if !doublestar.ValidatePattern(query) {
		return nil, fmt.Errorf("the glob %q is not valid", query)
	}
	return func(f File) bool { return doublestar.MatchUnvalidated(query, subject(f)) }, nil
}
