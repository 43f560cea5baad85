package configfile

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// JoinOr returns the words quoted and joined for a message, such as "a", "b" or "c".
func JoinOr(words []string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", w)
	}
	return b.String()
}

// JoinFew returns the first ten names joined by commas. If there are more, it appends their number: "and 5 more".
func JoinFew(names []string) string {
	const few = 10
	if over := len(names) - few; over > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), over)
	}
	return strings.Join(names, ", ")
}

// placeholderName matches the name at the start of the text between the braces of "${…}". A dash may be part of the
// name only after a prefix such as "input:", because ":-" and "-" otherwise begin a default value.
var placeholderName = lazyregexp.New(
	`^(?:(?:input|config|command|file):[A-Za-z0-9_./~-]*|(?:env:)?[A-Za-z0-9_. ]*)`)

// maxPlaceholder is the maximum length of a placeholder's name. It is not a repetition count in the expression, because
// such a count would make compiling the expression, at each start, a hundred times slower.
const maxPlaceholder = 100

// PlaceholderName returns the name in the text between the braces of "${…}". The text after the name is replaced by
// "…", because it may be a default value that is a secret.
func PlaceholderName(inner string) string {
	name := placeholderName().FindString(safetext.Truncate(inner, maxPlaceholder, safetext.Bytes, ""))
	if name != inner {
		name += "…"
	}
	return name
}

// DidYouMean returns text to append to a message about an unknown name: "; did you mean …?" with the most similar
// known name. It returns "" if no known name is similar.
func DidYouMean(name string, known []string) string {
	best := Nearest(name, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// Nearest returns the known name that is most similar to name; "" if no name is similar.
func Nearest(name string, known []string) string {
	best, least := "", 3
	folded := foldName(name)
	for _, k := range known {
		if d := editDistance(folded, foldName(k)); d < least && 2*d < len(name)+2 {
			best, least = k, d
		}
	}
	return best
}

// foldName returns the name in lower case, without dashes and underscores.
func foldName(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(name), "_", ""), "-", "")
}

// editDistance returns the number of letters to insert, remove or replace to turn a into b. If a name is longer than 32
// bytes, it returns the length of the longer name.
func editDistance(a, b string) int {
	const longest = 32
	if len(a) > longest || len(b) > longest {
		return max(len(a), len(b))
	}
	var last, next [longest + 1]int
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, last[j+1]+1, next[j]+1)
		}
		last = next
	}
	return last[len(b)]
}
