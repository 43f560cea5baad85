package shield

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// version names what definitions are looked at by: a digest of the sources of the rules, the lists of words and the walk.
// "go test ./shield -run Rules -update" writes it anew.
const version = "37488fc93d93"

// Rules names the rules and the tables beneath them: what was made of a definition by rules of the same name would be made
// of it again.
func Rules() string { return version + " Unicode " + unicode.Version + " " + norm.Version }
