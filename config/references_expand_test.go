package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPutIn(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "LOOP": "${A}", "a b": "spaced", "LOOKS": "${file:/x}"}
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
		{"${env:A}", "1", nil},
		{"x${env:A:-d}${env:B:-d}", "x1d", nil},
		{"${env:B}", "${env:B}", []string{"env:B"}},
		{"${env:}", "${env:}", []string{"env:"}},
		{"${env::-d}", "${env::-d}", []string{"env::-d"}},
		{"${env:-d}${file:-e}", "de", nil},
		{"${env:env:A}", "${env:env:A}", []string{"env:env:A"}},
		{"${ENV:A}", "${ENV:A}", []string{"ENV:A"}},
		{"${file:}", "${file:}", []string{"file:"}},
		{"$${file:x}", "${file:x}", nil},
		{"${LOOKS}", "${file:/x}", nil},
		{"${B:-${file:x}}", "${file:x}", nil},
		{"${A:x:-d}", "${A:x:-d}", []string{"A:x:-d"}},
		{"${a b}", "spaced", nil},
		{"${A", "${A", nil},
	} {
		var missing []string
		got, later := joinLiteralParts(expandReferences(tt.in, lookupInMap(env),
			func(name string) { missing = append(missing, name) }))
		if later != nil {
			t.Errorf("%q has %v in it", tt.in, later)
		}
		if got != tt.want || !slices.Equal(missing, tt.missing) {
			t.Errorf("PutIn(%q) = %q, missing %q; want %q, missing %q", tt.in, got, missing, tt.want, tt.missing)
		}
	}
}

func lookupInMap(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func TestReferences(t *testing.T) {
	env := map[string]string{"A": "1", "LOOKS": "${file:/x}"}
	for in, want := range map[string][]ValuePart{
		"${file:a b}":                     {{FilePart, "a b"}},
		"${file:a:-b}":                    {{FilePart, "a:-b"}},
		"Bearer ${keychain:GH}":           {{LiteralPart, "Bearer "}, {KeychainPart, "GH"}},
		"${A}${command:pass show x}${A}":  {{LiteralPart, "1"}, {CommandPart, "pass show x"}, {LiteralPart, "1"}},
		"${LOOKS}${file:y}":               {{LiteralPart, "${file:/x}"}, {FilePart, "y"}},
		"${file:y}$${file:z}${B:-d}":      {{FilePart, "y"}, {LiteralPart, "${file:z}d"}},
		"${command:echo {a}}":             {{CommandPart, "echo {a"}, {LiteralPart, "}"}},
		"${command:echo ${A}}":            {{CommandPart, "echo ${A"}, {LiteralPart, "}"}},
		"${file:x":                        {{LiteralPart, "${file:x"}},
		"${keychain:a}${keychain:b}":      {{KeychainPart, "a"}, {KeychainPart, "b"}},
		"${File:x}${input:x}${files:x}":   {{LiteralPart, "${File:x}${input:x}${files:x}"}},
		"":                                nil,
		"${keychain:- d}${file:}${env:A}": {{LiteralPart, " d${file:}1"}},
	} {
		if diff := cmp.Diff(want, expandReferences(in, lookupInMap(env), func(string) {})); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

// FuzzPutIn is row FZ-14: references are put in once, and what is not known stays as it is.
func FuzzPutIn(f *testing.F) {
	for _, s := range []string{"", "${A}", "${B:-d}", "${A:-${B}}", "a${", "}${A}}{", "${input:x}", "${:-}", "${env:A}",
		"${file:x}${command:y}", "$${keychain:z}"} {
		f.Add(s, "value")
	}
	f.Fuzz(func(t *testing.T, s, value string) {
		none := func(string) (string, bool) { return "", false }
		written := ""
		for _, p := range expandReferences(s, none, func(string) {}) {
			if p.Kind == LiteralPart {
				written += p.Text
				continue
			}
			written += p.String()
		}
		if !strings.Contains(s, ":-") && !strings.Contains(s, "$${") && written != s {
			t.Errorf("without variables and defaults %q became %q", s, written)
		}
		// What a variable holds is put in once, as it is.
		all := func(string) (string, bool) { return value, true }
		parts := expandReferences("<${X}>"+s, all, func(string) {})
		if len(parts) == 0 || parts[0].Kind != LiteralPart || !strings.HasPrefix(parts[0].Text, "<"+value+">") {
			t.Errorf("%q does not begin with the value %q", parts, value)
		}
		if !strings.Contains(s, "${") && (len(parts) != 1 || parts[0].Text != "<"+value+">"+s) {
			t.Errorf("%q became %q", s, parts)
		}
		for _, p := range parts[1:] {
			if p.Kind != LiteralPart && (p.Text == "" || !strings.Contains(s, "${"+string(p.Kind)+":"+p.Text+"}")) {
				t.Errorf("%q has no %v", s, p)
			}
		}
	})
}
