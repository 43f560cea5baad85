package skills

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An Skill is what a server sent of one skill.
type Skill struct {
	// URI is that of its SKILL.md.
	URI string
	// root is its directory, empty where the URI is not made as it should be.
	root string
	raw  json.RawMessage
}

// maxURIDepth is the most "/" that a skill's URI may have.
const maxURIDepth = 64

// ParseSkill reads an entry. The reason is why it cannot be listed, empty where it can.
func ParseSkill(raw json.RawMessage) (e Skill, reason string) {
	uri, ok := rawjson.DecodeString(rawjson.Get(raw, "uri"))
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return Skill{}, "it is not a JSON object"
	case !ok || uri == "":
		return Skill{}, "it has no uri"
	case len(uri) > naming.MaxURI || strings.Count(uri, "/") > maxURIDepth:
		return Skill{URI: uri[:min(len(uri), 200)]}, "its uri is too long"
	}
	return Skill{uri, skillRoot(uri), raw}, ""
}

// IsSkillURI says whether a URI is made as that of a skill is: a directory, and SKILL.md in it.
func IsSkillURI(uri string) bool { return skillRoot(uri) != "" }

// skillRoot is the directory of a SKILL.md: what its URI has before "/SKILL.md"; empty for other MapURIs.
func skillRoot(uri string) string {
	root, ok := strings.CutSuffix(uri, "/SKILL.md")
	if _, rest, hierarchical := naming.CutScheme(root); !ok || !hierarchical || rest == "" {
		return ""
	}
	return root
}

// uriSpace is what of all MapURIs belongs to the skill: its root and all below, or the one URI that it has.
func (e Skill) uriSpace() string {
	if e.root != "" {
		return e.root
	}
	return e.URI
}

// withServerURIs is the entry with its server in every URI.
func (e Skill) withServerURIs(server drawbridge.ServerID) json.RawMessage {
	return MapURIs(e.raw, func(uri string) string { return naming.AddServerAuthority(server, uri) })
}

// MapURIs changes the MapURIs of an entry, its own and those of its files, to what public gives for them. All else,
// digests and sizes too, stays as it is.
func MapURIs(entry json.RawMessage, public func(uri string) string) json.RawMessage {
	return naming.MapURIs(naming.MapURI(entry, public, "uri"), "resources", public)
}

// parentURIs goes through the URI and the directories above it, up to the authority.
func parentURIs(uri string) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, rest, ok := naming.CutScheme(uri)
		for yield(uri) && ok {
			i := strings.LastIndexByte(rest, '/')
			if i <= 0 {
				return
			}
			uri, rest = uri[:len(uri)-len(rest)+i], rest[:i]
		}
	}
}
