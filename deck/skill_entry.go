package deck

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A skillEntry is a server's entry for one skill.
type skillEntry struct {
	// uri is the URI of the skill's SKILL.md.
	uri string
	// root is the directory of the skill; empty if the URI does not end in "/SKILL.md".
	root string
	raw  json.RawMessage
}

// maxURIDepth is the maximum number of slashes in a skill's URI.
const maxURIDepth = 64

// parseSkill parses an entry of a server's list. reason is the reason why the entry cannot be listed; it is empty if
// the entry can be listed.
func parseSkill(raw json.RawMessage) (e skillEntry, reason string) {
	uri, ok := rawjson.DecodeString(rawjson.Get(raw, "uri"))
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return skillEntry{}, "it is not a JSON object"
	case !ok || uri == "":
		return skillEntry{}, "it has no uri"
	case len(uri) > naming.MaxURI || strings.Count(uri, "/") > maxURIDepth:
		return skillEntry{uri: uri[:min(len(uri), 200)]}, "its uri is too long"
	}
	return skillEntry{uri, skillRoot(uri), raw}, ""
}

// isSkillURI reports whether a URI has the form of a skill's URI: the URI of a directory, followed by "/SKILL.md".
func isSkillURI(uri string) bool { return skillRoot(uri) != "" }

// skillRoot returns the URI of the directory in which a SKILL.md is, or "" for other URIs.
func skillRoot(uri string) string {
	root, ok := strings.CutSuffix(uri, "/SKILL.md")
	if _, rest, hierarchical := naming.CutScheme(root); !ok || !hierarchical || rest == "" {
		return ""
	}
	return root
}

// uriSpace returns the URI of the skill's directory, or the skill's own URI if it has no directory.
func (e skillEntry) uriSpace() string {
	if e.root != "" {
		return e.root
	}
	return e.uri
}

// withServerURIs returns the skill's entry with the name of the given server added to every URI.
func (e skillEntry) withServerURIs(server drawbridge.ServerID) json.RawMessage {
	return mapSkillURIs(e.raw, func(uri string) string { return naming.AddServerAuthority(server, uri) })
}

// mapSkillURIs returns an entry in which each URI, of the skill and of its files, is replaced by the result of the
// function public. All other members stay unchanged, including digests and sizes.
func mapSkillURIs(entry json.RawMessage, public func(uri string) string) json.RawMessage {
	return naming.MapURIs(naming.MapURI(entry, public, "uri"), "resources", public)
}

// parentURIs yields the URI and the directories above it, up to the authority.
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
