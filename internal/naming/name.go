// Package naming says how callers name what servers have: the names of tools and prompts in each style, the URIs of
// resources where two servers have one, and which URIs a template may stand for.
//
// It promises that a label depends on a server and its own name for a thing alone, never on which other servers there
// are; that a URI with a server in it can be taken apart again; and that of an object whose URIs it changes nothing
// else changes. Which of its labels a thing gets is decided elsewhere.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// maxName is the most characters of a name that Drawbridge makes: hosts add up to 17 of their own in front, and
	// model providers stop at 64.
	maxName = 46
	// maxBareName is the most characters of a tool's name that MCP allows.
	maxBareName = 128
	// shortHashDigits and longHashDigits are how many hex digits tell shortened names apart.
	shortHashDigits, longHashDigits = 6, 12
)

// A Style is a style in which tools and prompts are named outward.
type Style string

// The styles. The empty Naming is Qualified.
const (
	// Qualified is "<server>__<tool>".
	Qualified Style = "qualified"
	// MCP is "mcp_<server>_<tool>", in lower case.
	MCP Style = "mcp"
	// Bare leaves a legal name as the server gave it; of two the later in configuration order is qualified.
	Bare Style = "bare"
)

// ToolNames gives the names that a server's tool may be listed by in a style, best first. Which of them it gets
// depends on what cards before it have.
func ToolNames(style Style, server drawbridge.ServerID, tool string) []drawbridge.CardName {
	qualified := QualifiedName(server, tool)
	switch {
	case style == MCP:
		return []drawbridge.CardName{MCPName(server, tool), qualified}
	case style == Bare && isLegalBareName(tool):
		return []drawbridge.CardName{drawbridge.CardName(tool), qualified}
	}
	return []drawbridge.CardName{qualified}
}

// FallbackName is for a card that others have taken every name of, as they can where a name was made up to look like
// another.
func FallbackName(server drawbridge.ServerID, tool string) drawbridge.CardName {
	return hashedName(joinName(server, tool), server, tool, longHashDigits)
}

// QualifiedName is "<server>__<tool>" where that is legal, short enough and can be read back: the first "__" must be
// the one between the two. Any other pair gets characters replaced by "_", is cut, and ends in a mark made of the pair,
// so that no two pairs share a name by accident, and no name depends on which other servers there are.
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

// MCPName is "mcp_<server>_<tool>": both in lower case, each run of other characters than letters and digits as one
// "_", and the server's name once where the tool's begins with it. Different pairs may share one.
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

// hashedName makes any text a legal name that ends in "_" and so many hex digits of SHA-256(server NUL tool).
func hashedName(text string, server drawbridge.ServerID, tool string, digits int) drawbridge.CardName {
	sum := sha256.Sum256([]byte(string(server) + "\x00" + tool))
	mark := "_" + hex.EncodeToString(sum[:])[:digits]
	text = replaceIllegalChars(text)
	return drawbridge.CardName(text[:min(len(text), maxName-len(mark))] + mark)
}

// replaceIllegalChars has "_" for every character that a name may not have.
func replaceIllegalChars(text string) string {
	return strings.Map(func(r rune) rune {
		if isNameChar(r) {
			return r
		}
		return '_'
	}, text)
}

// NamePrefixes gives what a name of a server's card begins with where it says its server, in the styles Qualified and
// MCP. The names of other servers may begin with one of them too.
func NamePrefixes(server drawbridge.ServerID) []string {
	const kept = maxName - longHashDigits - 1 // a longer name may be cut here
	out := []string{replaceIllegalChars(joinName(server, "")), "mcp_" + sanitizeMCPPart(string(server), "server") + "_"}
	for i, prefix := range out {
		out[i] = prefix[:min(len(prefix), kept)]
	}
	return out
}

// isLegalBareName says whether MCP allows the tool's name as it is.
func isLegalBareName(tool string) bool {
	return tool != "" && len(tool) <= maxBareName && isLegalName(strings.ReplaceAll(tool, ".", "_"))
}

func isLegalName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return !isNameChar(r) }) < 0
}

func isNameChar(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}
