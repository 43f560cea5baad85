package config

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// ApprovalFacts returns the facts that a person must approve before the row is mounted. A fact is a pair of a name and
// a printable value. The facts are the members of the row that Hash covers, except the server's name. They are in the
// order of DocumentedFields, and variables are not expanded. The names of the facts are "command", "args", "env NAME",
// "header NAME", "auth NAME" and so on.
//
// Approvals are stored, and must not contain secrets. Therefore values of env, headers and secret members of auth are
// replaced by a short digest. The user info, query and fragment of a url are replaced by one digest. If Program is
// known, its path and its digest are the last two facts.
func (s Server) ApprovalFacts() []NameValue {
	row, err := configfile.ParseJSON(s.Raw)
	if err != nil {
		return nil // the row is not an object
	}
	var all []NameValue
	for _, known := range rowMemberTable {
		m, ok := row.Find(known.name)
		if !ok || !known.inHash {
			continue
		}
		switch known.name {
		case "env", "headers":
			for _, p := range m.Value.Members {
				name := strings.TrimSuffix(known.name, "s") + " " + safetext.Line(p.Name)
				all = append(all, NameValue{name, secretDigest(name, p.Value.Text)})
			}
		case "url":
			all = append(all, urlFacts("url", m.Value.Text)...)
		case "auth", "oauth":
			all = append(all, authFacts(m)...)
		default:
			all = append(all, NameValue{known.name, factText(m.Value)})
		}
	}
	return append(all, s.Program.approvalFacts()...)
}

// factText returns a printable value: a string unchanged, anything else as JSON.
func factText(v configfile.Node) string {
	if s, ok := v.TextValue(); ok {
		return safetext.Exact(s)
	}
	return safetext.Line(string(v.AppendJSON(nil, false)))
}

// authFacts returns the facts about the sign-in: for each member of m, which is the row's member auth or oauth. The
// names of the facts are "auth token_url", "auth issuer" and so on. If m is not an object, such as auth = false, the
// only fact is m itself.
func authFacts(m configfile.Member) (all []NameValue) {
	if m.Value.Kind != configfile.Table {
		return []NameValue{{m.Name, factText(m.Value)}}
	}
	for _, p := range m.Value.Members {
		name := m.Name + " " + safetext.Line(p.Name)
		known, public := CanonicalAuthMember(p.Name)
		switch {
		case !public:
			all = append(all, NameValue{name, secretDigest(name, string(p.Value.AppendJSON(nil, true)))})
		case known == "resource" || strings.Contains(p.Value.Text, "://"):
			all = append(all, urlFacts(name, p.Value.Text)...)
		default:
			all = append(all, NameValue{name, factText(p.Value)})
		}
	}
	return all
}
