// Package naming makes the public names of servers' items: names of tools and prompts in each style, URIs of resources
// that two servers share, and the URIs that match a template.
//
// A name depends only on its server and the server's own name, never on other servers. A URI that contains a server can
// be taken apart again. Editing the URIs of an object changes nothing else in it. The package does not decide which of
// its possible names an item gets.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// maxName is the longest name that Drawbridge makes, in characters: hosts add prefixes of up to 17, and model
	// providers allow 64.
	maxName = 46
	// maxBareName is the longest tool name that MCP allows, in characters.
	maxBareName = 128
	// shortHashDigits and longHashDigits are the hex digits that distinguish shortened names.
	shortHashDigits, longHashDigits = 6, 12
)

// A Style is a style of public names of tools and prompts.
type Style string

// The styles. The empty Style is Qualified.
const (
	// Qualified is "<server>__<tool>".
	Qualified Style = "qualified"
	// MCP is "mcp_<server>_<tool>", in lower case.
	MCP Style = "mcp"
	// Bare keeps a legal name that does not look qualified. If two servers share one, only one of them has it.
	Bare Style = "bare"
)

// ToolNames returns the possible names of a server's tool in a style, best first. Which one it gets depends on the
// items before it.
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

// FallbackName returns the name of an item whose other names are all taken, as happens if another tool imitates its
// names.
func FallbackName(server drawbridge.ServerID, tool string) drawbridge.CardName {
	return hashedName(joinName(server, tool), server, tool, longHashDigits)
}

// QualifiedName returns "<server>__<tool>" if that is legal, short enough and unambiguous: the first "__" must be the
// separator. For any other pair it replaces illegal characters by "_", truncates, and appends a hash of the pair. So no
// two pairs share a name by accident, and no name depends on other servers.
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

// MCPName returns "mcp_<server>_<tool>" in lower case. Each run of characters other than letters and digits becomes one
// "_". The server's name is not repeated if the tool's begins with it. Different pairs may share a name.
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

// hashedName returns a legal name for text that ends in "_" and the given number of hex digits of SHA-256(server NUL
// tool).
func hashedName(text string, server drawbridge.ServerID, tool string, digits int) drawbridge.CardName {
	sum := sha256.Sum256([]byte(string(server) + "\x00" + tool))
	mark := "_" + hex.EncodeToString(sum[:])[:digits]
	text = replaceIllegalChars(text)
	return drawbridge.CardName(text[:min(len(text), maxName-len(mark))] + mark)
}

// replaceIllegalChars replaces every character that a name may not contain by "_".
func replaceIllegalChars(text string) string {
	return strings.Map(func(r rune) rune {
		if isNameChar(r) {
			return r
		}
		return '_'
	}, text)
}

// NamePrefixes returns the prefixes of the server's names in the styles Qualified and MCP. Names of other servers may
// begin with them too.
func NamePrefixes(server drawbridge.ServerID) []string {
	const kept = maxName - longHashDigits - 1 // a longer name may be cut here
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
