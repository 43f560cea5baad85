package config

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/facts"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// Facts are what a person approves in the row, as it was written, in the order of Fields: the members that count in
// Hash, each as a name and a value for people. A value of env or headers, of auth where it may be a secret, and what a url
// says beside scheme, host and path are a short digest in its place, so that what is kept of an approval holds no secret. The
// names are "command", "args", "env NAME", "header NAME", "auth NAME" and so on; last come those of Program, if it is known.
func (s Server) Facts() []Pair {
	row, err := doc.ParseJSON(s.Row)
	if err != nil {
		return nil // the row is no object
	}
	var all []Pair
	for _, known := range rowMembers {
		m, ok := row.Find(known.name)
		if !ok || !known.hashed {
			continue
		}
		switch known.name {
		case "env", "headers":
			for _, p := range m.Value.Members {
				name := strings.TrimSuffix(known.name, "s") + " " + safetext.Line(p.Name)
				all = append(all, Pair{name, facts.Digest(name, p.Value.Text)})
			}
		case "url":
			all = append(all, pairs(facts.URL("url", m.Value.Text))...)
		case "auth", "oauth":
			all = append(all, authFacts(m)...)
		default:
			all = append(all, Pair{known.name, fact(m.Value)})
		}
	}
	return append(all, pairs(s.Program.Facts())...)
}

// fact shows a value: a text as it is, whatever else as JSON.
func fact(v doc.Node) string {
	if s, ok := v.Word(); ok {
		return safetext.Exact(s)
	}
	return safetext.Line(string(v.AppendJSON(nil, false)))
}

// authFacts shows where one signs in, and as whom. The names are "auth token_url" and so on.
func authFacts(m doc.Member) (all []Pair) {
	if m.Value.Kind != doc.Table {
		return []Pair{{m.Name, fact(m.Value)}}
	}
	for _, p := range m.Value.Members {
		name := m.Name + " " + safetext.Line(p.Name)
		known, public := AuthMember(p.Name)
		switch {
		case !public:
			all = append(all, Pair{name, facts.Digest(name, string(p.Value.AppendJSON(nil, true)))})
		case known == "resource" || strings.Contains(p.Value.Text, "://"):
			all = append(all, pairs(facts.URL(name, p.Value.Text))...)
		default:
			all = append(all, Pair{name, fact(p.Value)})
		}
	}
	return all
}

// Changes says for people what became of facts: one line for each that changed, was added or was removed, such as
// "command: npx → sh" or "env TOKEN: its value changed". It is empty where nothing did. That another command is another
// program goes without saying.
func Changes(before, after []Pair) []string {
	return facts.Changes(shown(before), shown(after))
}

func pairs(all []facts.Fact) (out []Pair) {
	for _, f := range all {
		out = append(out, Pair(f))
	}
	return out
}

func shown(all []Pair) (out []facts.Fact) {
	for _, p := range all {
		out = append(out, facts.Fact(p))
	}
	return out
}
