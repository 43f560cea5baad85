package shield

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// rulesDigest identifies the rules for definitions. It is a digest of the word lists and of the source code of the
// rules and the walker. "go test ./internal/shield -run Rules -update" updates it.
const rulesDigest = "bc68bfa09efb"

// RulesVersion returns an identifier of the rules and of the Unicode tables that they use. As long as it is unchanged,
// the report for a definition is unchanged too.
func RulesVersion() string { return rulesDigest + " Unicode " + unicode.Version + " " + norm.Version }
