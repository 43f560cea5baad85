// Package facts says what a person approves in a row, and what became of it since.
//
// It promises that what is kept of an approval holds no secret, and that a program which is not byte for byte the file that was
// looked at is not taken for it, wherever it stands and whatever its date says.
package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Fact is what a person was shown: a name and a value.
type Fact struct{ Name, Value string }

// Digest stands for a value that may be a secret: it tells a changed value from one that is as it was. The name is in
// it, so that equal values of two names do not show.
func Digest(name, value string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + value))
	return digestPrefix + hex.EncodeToString(sum[:])[:16]
}

const digestPrefix = "sha256:"

// URL shows where a url leads, and keeps of the rest of it a digest.
func URL(name, s string) []Fact {
	end := len(s)
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		end = i
	}
	shown, rest := s[:end], s[end:]
	scheme, address, _ := strings.Cut(shown, "://")
	host, path, hasPath := strings.Cut(address, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 {
		shown, rest = scheme+"://"+host[i+1:], host[:i]+"@"+rest
		if hasPath {
			shown += "/" + path
		}
	}
	all := []Fact{{name, safetext.Exact(shown)}}
	if rest != "" {
		all = append(all, Fact{name + " secrets", Digest(name, rest)})
	}
	return all
}

// Changes says for people what became of facts: one line for each that changed, was added or was removed, such as
// "command: npx → sh" or "env TOKEN: its value changed". It is empty where nothing did. That another command is another
// program goes without saying.
func Changes(before, after []Fact) []string {
	find := func(facts []Fact, name string) (string, bool) {
		i := slices.IndexFunc(facts, func(p Fact) bool { return p.Name == name })
		if i < 0 {
			return "", false
		}
		return facts[i].Value, true
	}
	if was, _ := find(before, "command"); !slices.Contains(after, Fact{"command", was}) {
		before, after = withoutProgram(before), withoutProgram(after)
	}
	var lines []string
	for _, p := range after {
		old, had := find(before, p.Name)
		hidden := strings.HasPrefix(p.Value, digestPrefix)
		switch {
		case had && old == p.Value:
		case had && hidden:
			lines = append(lines, p.Name+": its value changed")
		case had:
			lines = append(lines, fmt.Sprintf("%s: %s → %s", p.Name, old, p.Value))
		case hidden:
			lines = append(lines, p.Name+": added")
		default:
			lines = append(lines, fmt.Sprintf("%s: added (%s)", p.Name, p.Value))
		}
	}
	for _, p := range before {
		if _, has := find(after, p.Name); !has {
			lines = append(lines, p.Name+": removed")
		}
	}
	return lines
}
