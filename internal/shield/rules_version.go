package shield

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// rulesDigest identifies the rules for definitions: a digest of the source files of the rules, the word lists and the
// walker. "go test ./internal/shield -run Rules -update" updates it.
const rulesDigest = "978ae88dc0c0"

// RulesVersion identifies the rules and the Unicode tables that they use. With the same version, a definition has the
// same report.
func RulesVersion() string { return rulesDigest + " Unicode " + unicode.Version + " " + norm.Version }
