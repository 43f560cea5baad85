// Package value reads the values of settings, and puts variables in. Its errors follow a setting's name: "must be a whole number above 0".
package value

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// Must is the error about a value, which follows the setting's name.
func Must(format string, args ...any) error { return fmt.Errorf("must be "+format, args...) }

// OneOf reads one of some words.
func OneOf(to *string, v doc.Node, words ...string) error {
	for _, w := range words {
		if v.Kind == doc.Text && v.Text == w {
			*to = w
			return nil
		}
	}
	return Must("%s", doc.Choice(words))
}

// Positive reads a time above 0.
func Positive(to *time.Duration, v doc.Node) error {
	d, ok := v.Duration()
	if !ok || d <= 0 {
		return Must(`a time above 0, such as "30s"`)
	}
	*to = d
	return nil
}

// Grace reads a time. It takes 0 too, which a field cannot hold: there it means the default.
func Grace(to *time.Duration, v doc.Node) error {
	d, ok := v.Duration()
	if !ok || d < 0 {
		return Must(`a time, such as "250ms", or 0`)
	}
	*to = d
	if d == 0 {
		*to = -1
	}
	return nil
}

// OrNever reads a time above 0, or "never", which is -1.
func OrNever(to *time.Duration, v doc.Node) error {
	if s, ok := v.Word(); ok && s == "never" {
		*to = -1
		return nil
	}
	if Positive(to, v) != nil {
		return Must(`a time above 0, such as "15m", or "never"`)
	}
	return nil
}

// Whole reads a whole number above 0.
func Whole(to *int, v doc.Node) error {
	n, ok := v.Count()
	if !ok {
		return Must("a whole number above 0")
	}
	*to = n
	return nil
}

// Bytes reads a whole number of bytes above 0.
func Bytes(to *int64, v doc.Node) error {
	n, ok := v.Count()
	if !ok {
		return Must("a whole number of bytes above 0")
	}
	*to = int64(n)
	return nil
}

// Flag reads a boolean.
func Flag(to **bool, v doc.Node) error {
	b, ok := v.Flag()
	if !ok {
		return Must("true or false")
	}
	*to = &b
	return nil
}

// FlagOrNames reads a boolean, or a list of names.
func FlagOrNames(to **bool, names *[]string, v doc.Node) error {
	if v.Kind != doc.List {
		if Flag(to, v) != nil {
			return Must("true, false or a list of names")
		}
		return nil
	}
	words, ok := v.Words()
	if !ok || slices.Contains(words, "") {
		return Must("a list of names")
	}
	*names = words
	return nil
}

// Scopes reads a table of lists of scopes, by name; a list may be empty only where that is said.
func Scopes(to *map[string][]string, v doc.Node, empty bool) error {
	if v.Kind != doc.Table {
		return Must("a table of lists of scopes")
	}
	scopes := map[string][]string{}
	for _, m := range v.Members {
		words, ok := m.Value.Words()
		if !ok || m.Value.Kind != doc.List || len(words) == 0 && !empty {
			return Must(`a table of lists of scopes, such as {"%s" = ["mcp:*"]}`, m.Name)
		}
		scopes[m.Name] = words
	}
	*to = scopes
	return nil
}

// maxName is the most bytes of a name: others are made by adding to it.
const maxName = 48

// Name reads a name that means the same everywhere: a to z, 0 to 9 and _.
func Name(to *string, v doc.Node) error {
	name, _ := v.Word()
	other := func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') }
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, other) {
		return Must("1 to %d of a to z, 0 to 9 and _", maxName)
	}
	*to = name
	return nil
}
