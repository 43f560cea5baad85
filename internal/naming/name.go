// Package naming derives public names for servers' items: names of tools and prompts in each style, and qualified URIs
// of resources. It also matches URIs against URI templates.
//
// A public name depends only on its server and on the server's own name for the item, and never on other servers.
// Therefore two items may have the same possible name. The package returns the possible names of an item; the caller
// decides which name is used.
//
// A qualified URI can be split into the server and the server's own URI. Functions that rewrite the URIs in a JSON
// object do not change the rest of the object.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// maxName is the maximum length in characters of a name that Drawbridge derives. Model providers allow 64
	// characters, and hosts add prefixes of up to 17.
	maxName = 46
	// maxBareName is the maximum length of a tool name in MCP, in characters.
	maxBareName = 128
	// shortHashDigits and longHashDigits are the numbers of hex digits of the hash at the end of a shortened name.
	shortHashDigits, longHashDigits = 6, 12
)

// A Style is a style of the public names of tools and prompts.
type Style string

// The styles. The empty Style means Qualified.
const (
	// Qualified is "<server>__<tool>".
	Qualified Style = "qualified"
	// MCP is "mcp_<server>_<tool>", in lower case.
	MCP Style = "mcp"
	// Bare is the tool's own name, if it is legal and does not look qualified. If two servers have a tool of the same
	// name, only one of the tools gets this name.
	Bare Style = "bare"
)

// ToolNames returns the possible names of a server's tool in a style, the preferred name first. The caller must check
// whether another item already has a name.
func ToolNames(style Style, server drawbridge.ServerID, tool string) []drawbridge.CardName {
	qualified := QualifiedName(server, tool)
	switch {
	case style == MCP:
		return []drawbridge.CardName{MCPName(server, tool), qualified}
	case style == Bare && isLegalBareName(tool) && !strings.Contains(tool, drawbridge.NameSeparator):
		return []drawbridge.CardName{drawbridge.CardName(tool), qualified}
	}
	return []drawbridge.CardName{qualified}
}

// FallbackName returns a name for an item whose names from ToolNames are all in use. This happens, for example, if
// another server deliberately gave its tool the same name. The result ends with a longer hash than in QualifiedName.
func FallbackName(server drawbridge.ServerID, tool string) drawbridge.CardName {
	return hashedName(joinName(server, tool), server, tool, longHashDigits)
}

// QualifiedName returns "<server>__<tool>" if this name is legal, at most maxName long, and its first "__" is the
// separator. Otherwise it replaces illegal characters by "_", truncates the name, and appends a hash of server and
// tool. Because of the hash, two different tools do not get the same name by accident.
func QualifiedName(server drawbridge.ServerID, tool string) drawbridge.CardName {
	name := joinName(server, tool)
	readable := strings.Index(name, drawbridge.NameSeparator) == len(server)
	if readable && tool != "" && len(name) <= maxName && isLegalName(name) {
		return drawbridge.CardName(name)
	}
	return hashedName(name, server, tool, shortHashDigits)
}

func joinName(server drawbridge.ServerID, tool string) string {
	return string(server) + drawbridge.NameSeparator + tool
}

// MCPName returns "mcp_<server>_<tool>" in lower case. Each run of characters other than letters and digits is replaced
// by "_". If the tool's name begins with the server's name, the server's name is not repeated. A name longer than
// maxName is truncated and ends with a hash. Two different tools may get the same name.
func MCPName(server drawbridge.ServerID, tool string) drawbridge.CardName {
	s, t := sanitizeMCPPart(string(server), "server"), sanitizeMCPPart(tool, "tool")
	if rest, ok := strings.CutPrefix(t, s+"_"); ok {
		t = rest
	}
	name := "mcp_" + s + "_" + t
	if len(name) <= maxName {
		return drawbridge.CardName(name)
	}
	return hashedName(name, server, tool, shortHashDigits)
}

func sanitizeMCPPart(text, fallback string) string {
	part := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "_")
	if part == "" {
		return fallback
	}
	return part
}

// hashedName returns a legal name: text, truncated if necessary, then "_" and a hash. The hash is the start of the hex
// SHA-256 of server, a NUL byte and tool; digits is its length.
func hashedName(text string, server drawbridge.ServerID, tool string, digits int) drawbridge.CardName {
	sum := sha256.Sum256([]byte(string(server) + "\x00" + tool))
	mark := "_" + hex.EncodeToString(sum[:])[:digits]
	text = replaceIllegalChars(text)
	return drawbridge.CardName(text[:min(len(text), maxName-len(mark))] + mark)
}

// replaceIllegalChars replaces each character that is not allowed in a name by "_".
func replaceIllegalChars(text string) string {
	return strings.Map(func(r rune) rune {
		if isNameChar(r) {
			return r
		}
		return '_'
	}, text)
}

// NamePrefixes returns the two prefixes with which the names of the server's tools begin in the styles Qualified and
// MCP. Names of another server's tools may begin with the same prefixes.
func NamePrefixes(server drawbridge.ServerID) []string {
	const kept = maxName - longHashDigits - 1 // a name may be truncated here, before its hash
	out := []string{replaceIllegalChars(joinName(server, "")), "mcp_" + sanitizeMCPPart(string(server), "server") + "_"}
	for i, prefix := range out {
		out[i] = prefix[:min(len(prefix), kept)]
	}
	return out
}

// isLegalBareName reports whether MCP allows the tool's name unchanged.
func isLegalBareName(tool string) bool {
	return tool != "" && len(tool) <= maxBareName && isLegalName(strings.ReplaceAll(tool, ".", "_"))
}

func isLegalName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return !isNameChar(r) }) < 0
}

func isNameChar(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}
