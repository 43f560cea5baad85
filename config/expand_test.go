package config

import (
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "LOOP": "${A}", "a b": "spaced"}
	for _, tt := range []struct {
		in, want string
		missing  []string
	}{
		{"", "", nil},
		{"plain $A ${", "plain $A ${", nil},
		{"${A}", "1", nil},
		{"x${A}y${A}z", "x1y1z", nil},
		{"${A:-d}", "1", nil},
		{"${B:-d}", "d", nil},
		{"${B:-}", "", nil},
		{"${B:-a:-b}", "a:-b", nil},
		{"${EMPTY}", "", nil},
		{"${EMPTY:-d}", "", nil},
		{"${LOOP}", "${A}", nil},
		{"${B:-$A}", "$A", nil},
		{"${B}", "${B}", []string{"B"}},
		{"${B}${A}${C}", "${B}1${C}", []string{"B", "C"}},
		{"${}", "${}", []string{""}},
		{"${:-d}", "d", nil},
		{"${:-!}cmd", "!cmd", nil},
		{"$${A}", "${A}", nil},
		{"a$$${A}b${A}", "a$${A}b1", nil},
		{"${:-$}${A}", "$1", nil},
		{"$${", "${", nil},
		{"${A:d}", "${A:d}", []string{"A:d"}},
		{"${env:A}", "${env:A}", []string{"env:A"}},
		{"${A:x:-d}", "${A:x:-d}", []string{"A:x:-d"}},
		{"${a b}", "spaced", nil},
		{"${A", "${A", nil},
	} {
		var missing []string
		got := expand(tt.in, lookupIn(env), func(name string) { missing = append(missing, name) })
		if got != tt.want || !slices.Equal(missing, tt.missing) {
			t.Errorf("expand(%q) = %q, missing %q; want %q, missing %q", tt.in, got, missing, tt.want, tt.missing)
		}
	}
}

func lookupIn(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "${A}", "${B:-d}", "${A:-${B}}", "a${", "}${A}}{", "${input:x}", "${:-}"} {
		f.Add(s, "value")
	}
	f.Fuzz(func(t *testing.T, s, value string) {
		none := func(string) (string, bool) { return "", false }
		if !strings.Contains(s, ":-") && !strings.Contains(s, "$${") {
			if got := expand(s, none, func(string) {}); got != s {
				t.Errorf("without variables and defaults %q became %q", s, got)
			}
		}
		// What a variable holds is put in once, as it is.
		all := func(string) (string, bool) { return value, true }
		got := expand("<${X}>"+s, all, func(string) {})
		if !strings.HasPrefix(got, "<"+value+">") {
			t.Errorf("%q does not begin with the value %q", got, value)
		}
		if !strings.Contains(s, "${") && got != "<"+value+">"+s {
			t.Errorf("%q became %q", s, got)
		}
	})
}
