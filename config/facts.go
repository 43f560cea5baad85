package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// digestOf stands for a value that may be a secret: it tells a changed value from one that is as it was. The name is in
// it, so that equal values of two names do not show.
func digestOf(name, value string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + value))
	return digestPrefix + hex.EncodeToString(sum[:])[:16]
}

const digestPrefix = "sha256:"

// Facts are what a person approves in the row, as it was written, in the order of Fields: the members that count in
// Hash, each as a name and a value for people. A value of env or headers, of auth where it may be a secret, and what a url
// says beside scheme, host and path are a short digest in its place, so that what is kept of an approval holds no secret. The
// names are "command", "args", "env NAME", "header NAME", "auth NAME" and so on.
func (s Server) Facts() []Pair {
	row, err := doc.ParseJSON(s.Row)
	if err != nil {
		return nil // the row is no object
	}
	var facts []Pair
	for _, known := range rowMembers {
		m, ok := row.Find(known.name)
		if !ok || !known.hashed {
			continue
		}
		switch known.name {
		case "env", "headers":
			for _, p := range m.Value.Members {
				name := strings.TrimSuffix(known.name, "s") + " " + doc.Printable(p.Name)
				facts = append(facts, Pair{name, digestOf(name, p.Value.Text)})
			}
		case "url":
			facts = append(facts, urlFacts("url", m.Value.Text)...)
		case "auth", "oauth":
			facts = append(facts, authFacts(m)...)
		default:
			facts = append(facts, Pair{known.name, fact(m.Value)})
		}
	}
	return facts
}

// fact shows a value: a text as it is, whatever else as JSON.
func fact(v doc.Node) string {
	if s, ok := v.Word(); ok {
		return doc.Printable(s)
	}
	return doc.Printable(string(v.AppendJSON(nil, false)))
}

// authFacts shows where one signs in, and as whom. The names are "auth token_url" and so on.
func authFacts(m doc.Member) (facts []Pair) {
	if m.Value.Kind != doc.Table {
		return []Pair{{m.Name, fact(m.Value)}}
	}
	for _, p := range m.Value.Members {
		name := m.Name + " " + doc.Printable(p.Name)
		known, public := AuthMember(p.Name)
		switch {
		case !public:
			facts = append(facts, Pair{name, digestOf(name, string(p.Value.AppendJSON(nil, true)))})
		case known == "resource" || strings.Contains(p.Value.Text, "://"):
			facts = append(facts, urlFacts(name, p.Value.Text)...)
		default:
			facts = append(facts, Pair{name, fact(p.Value)})
		}
	}
	return facts
}

// urlFacts shows where a url leads, and keeps of the rest of it a digest.
func urlFacts(name, s string) []Pair {
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
	facts := []Pair{{name, doc.Printable(shown)}}
	if rest != "" {
		facts = append(facts, Pair{name + " secrets", digestOf(name, rest)})
	}
	return facts
}

// Changes says for people what became of facts: one line for each that changed, was added or was removed, such as
// "command: npx → sh" or "env TOKEN: its value changed". It is empty where nothing did.
func Changes(before, after []Pair) []string {
	find := func(facts []Pair, name string) (string, bool) {
		i := slices.IndexFunc(facts, func(p Pair) bool { return p.Name == name })
		if i < 0 {
			return "", false
		}
		return facts[i].Value, true
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
