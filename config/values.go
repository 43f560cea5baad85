package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// mustBeError returns an error such as "must be true or false". The caller adds the setting's name in front of the
// text.
func mustBeError(format string, args ...any) error { return fmt.Errorf("must be "+format, args...) }

// readOneOf reads a string that must be one of words.
func readOneOf(to *string, v configfile.Node, words ...string) error {
	for _, w := range words {
		if v.Kind == configfile.Text && v.Text == w {
			*to = w
			return nil
		}
	}
	return mustBeError("%s", configfile.JoinOr(words))
}

// readPositiveDuration reads a duration above 0.
func readPositiveDuration(to *time.Duration, v configfile.Node) error {
	d, ok := v.Duration()
	if !ok || d <= 0 {
		return mustBeError(`a time above 0, such as "30s", or a number of milliseconds`)
	}
	*to = d
	return nil
}

// readDurationAllowZero reads a duration. It stores 0 as -1, because 0 in a field means the default.
func readDurationAllowZero(to *time.Duration, v configfile.Node) error {
	d, ok := v.Duration()
	if !ok || d < 0 {
		return mustBeError(`a time, such as "250ms", a number of milliseconds, or 0`)
	}
	*to = d
	if d == 0 {
		*to = -1
	}
	return nil
}

// readDurationOrNever reads a duration above 0, or "never", which is stored as -1.
func readDurationOrNever(to *time.Duration, v configfile.Node) error {
	if s, ok := v.TextValue(); ok && s == "never" {
		*to = -1
		return nil
	}
	if readPositiveDuration(to, v) != nil {
		return mustBeError(`a time above 0, such as "15m", a number of milliseconds, or "never"`)
	}
	return nil
}

// readPositiveInt reads a whole number above 0.
func readPositiveInt(to *int, v configfile.Node) error {
	n, ok := v.PositiveInt()
	if !ok {
		return mustBeError("a whole number above 0")
	}
	*to = n
	return nil
}

// readByteCount reads a whole number of bytes above 0.
func readByteCount(to *int64, v configfile.Node) error {
	n, ok := v.PositiveInt()
	if !ok {
		return mustBeError("a whole number of bytes above 0")
	}
	*to = int64(n)
	return nil
}

// readBool reads a boolean.
func readBool(to **bool, v configfile.Node) error {
	b, ok := v.Bool()
	if !ok {
		return mustBeError("true or false")
	}
	*to = &b
	return nil
}

// readBoolOrNames reads a boolean into to, or a list of names into names.
func readBoolOrNames(to **bool, names *[]string, v configfile.Node) error {
	if v.Kind != configfile.List {
		if readBool(to, v) != nil {
			return mustBeError("true, false or a list of names")
		}
		return nil
	}
	words, ok := v.TextValues()
	if !ok || slices.Contains(words, "") {
		return mustBeError("a list of names")
	}
	*names = words
	return nil
}

// readScopesByName reads a table that maps names to lists of scopes. A list may be empty only if empty is true.
func readScopesByName(to *map[string][]string, v configfile.Node, empty bool) error {
	if v.Kind != configfile.Table {
		return mustBeError("a table of lists of scopes")
	}
	scopes := map[string][]string{}
	for _, m := range v.Members {
		words, ok := m.Value.TextValues()
		if !ok || m.Value.Kind != configfile.List || len(words) == 0 && !empty {
			return mustBeError(`a table of lists of scopes, such as {"%s" = ["mcp:*"]}`, m.Name)
		}
		scopes[m.Name] = words
	}
	*to = scopes
	return nil
}

// maxCollectionName is the maximum number of bytes of a collection's name. It leaves room for the suffixes that are
// appended to the name.
const maxCollectionName = 48

// readCollectionName reads a name that every vector store accepts, with the characters a to z, 0 to 9 and _.
func readCollectionName(to *string, v configfile.Node) error {
	name, _ := v.TextValue()
	other := func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') }
	if name == "" || len(name) > maxCollectionName || strings.ContainsFunc(name, other) {
		return mustBeError("1 to %d of a to z, 0 to 9 and _", maxCollectionName)
	}
	*to = name
	return nil
}
