package filesearch

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// CompileName returns a function that reports whether a file has a name, without regard to case. With "*", "?" or "["
// the query is a glob for the whole name, or for the path if it has a slash ("**" is any number of directories).
// Otherwise it is a part of the name, or of the path if it has a slash.
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
