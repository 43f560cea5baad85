package config

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// ApprovalFacts returns the parts of the row that a person approves, as names and printable values. They are the
// members that count in Hash, as written, in the order of DocumentedFields. Names are "command", "args", "env NAME",
// "header NAME", "auth NAME" and so on. Values of env, headers and secret auth members are replaced by a short digest.
// So are the user info, query and fragment of a url. A stored approval therefore contains no secret. The path and
// digest of Program follow at the end, if Program is known.
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

// authFacts returns the facts of the member auth or oauth: the issuer, the client and the other sign-in parameters. The
// names are "auth token_url" and so on.
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
