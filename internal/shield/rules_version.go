package shield

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// rulesDigest names what definitions are looked at by: a digest of the sources of the rules, the lists of words and
// the walk. "go test ./shield -run Rules -update" writes it anew.
const rulesDigest = "a82dc49089f1"

// RulesVersion names the rules and the tables beneath them: what was made of a definition by rules of the same name
// would be made of it again.
func RulesVersion() string { return rulesDigest + " Unicode " + unicode.Version + " " + norm.Version }
