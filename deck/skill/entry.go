package skill

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An Entry is what a server sent of one skill.
type Entry struct {
	// URI is that of its SKILL.md.
	URI string
	// root is its directory, empty where the URI is not made as it should be.
	root string
	raw  json.RawMessage
}

// maxDepth is the most "/" that a skill's URI may have.
const maxDepth = 64

// Read reads an entry. The reason is why it cannot be listed, empty where it can.
func Read(raw json.RawMessage) (e Entry, reason string) {
	uri, ok := wire.Text(wire.Get(raw, "uri"))
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return Entry{}, "it is no object"
	case !ok || uri == "":
		return Entry{}, "it has no uri"
	case len(uri) > label.MaxURI || strings.Count(uri, "/") > maxDepth:
		return Entry{URI: uri[:min(len(uri), 200)]}, "its uri is too long"
	}
	return Entry{uri, rootOf(uri), raw}, ""
}

// IsSkill says whether a URI is made as that of a skill is: a directory, and SKILL.md in it.
func IsSkill(uri string) bool { return rootOf(uri) != "" }

// rootOf is the directory of a SKILL.md: what its URI has before "/SKILL.md"; empty for other URIs.
func rootOf(uri string) string {
	root, ok := strings.CutSuffix(uri, "/SKILL.md")
	if _, rest, hierarchical := label.CutScheme(root); !ok || !hierarchical || rest == "" {
		return ""
	}
	return root
}

// space is what of all URIs belongs to the skill: its root and all below, or the one URI that it has.
func (e Entry) space() string {
	if e.root != "" {
		return e.root
	}
	return e.URI
}

// qualified is the entry with its server in every URI.
func (e Entry) qualified(server drawbridge.ServerID) json.RawMessage {
	return URIs(e.raw, func(uri string) string { return label.InAuthority(server, uri) })
}

// URIs changes the URIs of an entry, its own and those of its files, to what public gives for them. All else, digests and
// sizes too, stays as it is.
func URIs(entry json.RawMessage, public func(uri string) string) json.RawMessage {
	return label.EachURI(label.ChangeURI(entry, public, "uri"), "resources", public)
}

// up goes through the URI and the directories above it, up to the authority.
func up(uri string) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, rest, ok := label.CutScheme(uri)
		for yield(uri) && ok {
			i := strings.LastIndexByte(rest, '/')
			if i <= 0 {
				return
			}
			uri, rest = uri[:len(uri)-len(rest)+i], rest[:i]
		}
	}
}
