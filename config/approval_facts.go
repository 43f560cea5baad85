package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// secretDigest returns a digest that replaces a value that may be secret. If the value changes, the digest changes. The
// digest is computed from the name and the value, so one value has different digests under two names.
func secretDigest(name, value string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + value))
	return secretDigestPrefix + hex.EncodeToString(sum[:])[:16]
}

const secretDigestPrefix = "sha256:"

// urlFacts returns a fact with the given name. Its value is the URL s without user info, query and fragment. If s has
// any of these three parts, a second fact, named "NAME secrets", contains a digest of them.
func urlFacts(name, s string) []NameValue {
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
	all := []NameValue{{name, safetext.Exact(shown)}}
	if rest != "" {
		all = append(all, NameValue{name + " secrets", secretDigest(name, rest)})
	}
	return all
}

// ApprovalChanges compares two results of ApprovalFacts and describes the differences for people. It returns one line
// for each fact that was changed, added or removed, such as "command: npx → sh" or "env TOKEN: its value changed". If
// the command changed, another program file is expected, so changes of the file's path and digest are not listed.
func ApprovalChanges(before, after []NameValue) []string {
	find := func(facts []NameValue, name string) (string, bool) {
		i := slices.IndexFunc(facts, func(p NameValue) bool { return p.Name == name })
		if i < 0 {
			return "", false
		}
		return facts[i].Value, true
	}
	if was, _ := find(before, "command"); !slices.Contains(after, NameValue{"command", was}) {
		before, after = withoutProgramFacts(before), withoutProgramFacts(after)
	}
	var lines []string
	for _, p := range after {
		old, had := find(before, p.Name)
		hidden := strings.HasPrefix(p.Value, secretDigestPrefix)
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
